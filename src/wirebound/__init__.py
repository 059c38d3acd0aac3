"""wirebound: is the network the bottleneck of distributed training?

Public names are looked up when they are first used, so that `import wirebound`
loads nothing but this module.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebound.api import whatif

__version__ = "0.1.0.dev0"

__all__ = ["__version__", "whatif"]

_HOME = {"whatif": "wirebound.api"}
"""Where each public name lives; repeated above for type checkers."""


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | _HOME.keys())
