"""Studies that were made up: a network that is known, and runs that took what it says."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from wirebound.network.measured import predict as predict_sample
from wirebound.network.record import Network, Tier
from wirebound.samples import Sample, Samples
from wirebound.simulate.program import Program
from wirebound.study.predict import scenario
from wirebound.study.record import Bench, Config, Mode, Run, Study
from wirebound.workload.bucketing import DDP
from wirebound.workload.record import Gradient, data_parallel
from wirebound.workload.recorded import Recorded
from wirebound.workload.reduce import Reduced
from wirebound.workload.schedule import Schedule

MIB = 2**20
SIZES = tuple(1024 * 2**power for power in range(16))
WORKLOAD = data_parallel(
    "net",
    [Gradient(f"g{number}", 4 * MIB, 0.02 * (number + 1)) for number in range(5)],
    forward_s=0.05,
    backward_s=0.1,
    optimizer_s=0.01,
)
LINKS = (5e8, 1e9, None)
UNLIMITED_BPS = 16e9


def true_network(link_bps: float | None) -> Network:
    """What really carries the bytes: 95 % of the rate, 50 us a message."""
    return Network("true", Tier("t", link_bps or UNLIMITED_BPS, 5e-5, 0.95))


def samples_of(network: Network) -> Samples:
    """What a bench would measure on it."""
    blank = [Sample("all_reduce", size, 1.0, ranks=2, nodes=2) for size in SIZES]
    timed = (
        msgspec.structs.replace(one, seconds=predict_sample(network, one, "ring")) for one in blank
    )
    return Samples(tuple(timed), "bench")


def reduced(step_s: float, **changes: object) -> Reduced:
    """A recording that took so long."""
    recorded = Recorded(
        step_s=step_s, alone_s=WORKLOAD.compute_s, exposed_wait_s=0.0, comm_s=0.0, collectives=(),
        steps=10, ranks=1, world_size=1, local_world_size=1, hosts=("host0",), device="cpu",
        backend="gloo",
    )  # fmt: skip
    made = Reduced(WORKLOAD, Schedule(bucketing=DDP(4.0 * MIB, 4.0 * MIB)), recorded)
    return msgspec.structs.replace(made, **changes)


def config(workers: int = 2, link_bps: float | None = None, mode: Mode = "joined") -> Config:
    """A run of the one script."""
    return Config("net", workers, mode, link_bps, 4 * MIB, 32, 1, 0)


def study(factor: float = 1.0, links: Sequence[float | None] = LINKS) -> tuple[Study, list[Run]]:
    """A study whose joined runs took `factor` times what the true network says."""
    runs = [Run("alone", config(1), 0.0, 1.0, reduced=reduced(WORKLOAD.compute_s))]
    for link_bps in links:
        asked = config(link_bps=link_bps)
        program = Program(WORKLOAD, true_network(link_bps), scenario(asked, WORKLOAD))
        truth = float(program.step_s()[0])
        runs.append(Run(f"run-{link_bps}", asked, 0.0, 1.0, reduced=reduced(truth * factor)))
    benches = tuple(Bench(2, link, samples_of(true_network(link))) for link in links)
    return Study("made", "", "lab", {}, benches), runs


class Made:
    """A study on the disk.

    Args:
        factor: What runs took over what the true network says.
    """

    def __init__(self, factor: float = 1.0) -> None:
        self.study, self.runs = study(factor)

    def write(self, folder: Path) -> None:
        """Write its two files."""
        folder.mkdir()
        (folder / "study.json").write_bytes(msgspec.json.encode(self.study))
        lines = b"".join(msgspec.json.encode(run) + b"\n" for run in self.runs)
        (folder / "runs.jsonl").write_bytes(lines)
