"""wirebound: is the network the bottleneck of distributed training?

Public names are looked up when they are first used, so that `import wirebound`
loads nothing but this module.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebound.api import whatif
    from wirebound.errors import WireboundError
    from wirebound.network.record import Network
    from wirebound.record.recorder import Recorder
    from wirebound.verdict.record import Verdict
    from wirebound.workload.files import read_workload
    from wirebound.workload.record import Gradient, Workload, data_parallel

__version__ = "0.1.0.dev0"

__all__ = [
    "Gradient",
    "Network",
    "Recorder",
    "Verdict",
    "WireboundError",
    "Workload",
    "__version__",
    "data_parallel",
    "read_workload",
    "whatif",
]

_HOME = {
    "Gradient": "wirebound.workload.record",
    "Network": "wirebound.network.record",
    "Recorder": "wirebound.record.recorder",
    "Verdict": "wirebound.verdict.record",
    "WireboundError": "wirebound.errors",
    "Workload": "wirebound.workload.record",
    "data_parallel": "wirebound.workload.record",
    "read_workload": "wirebound.workload.files",
    "whatif": "wirebound.api",
}
"""Where each public name lives; repeated above for type checkers."""


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOME.keys())
