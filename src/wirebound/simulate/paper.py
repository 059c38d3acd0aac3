"""The original study as one named strategy: its rule, its formula, its table.

Zhang et al., "Is Network the Bottleneck of Distributed Training?" (NetAI 2020). Gradients
are fused by `PaperFusion`; one flat ring at a time moves 2 S (N-1)/N bytes at line rate,
divided by the compression ratio, and pays N-1 additions of S/N bytes from a measured
table. No latency, no codec cost. The paper's overhead is the end of the last all-reduce
minus the backward time, its scaling factor t / (t + overhead), which is alone over step.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.errors import NetworkError, ReadError
from wirebound.inputs import read_text
from wirebound.network.record import Network, Reduction, Tier
from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Scenario
from wirebound.units import GIGA
from wirebound.workload.bucketing import PaperFusion
from wirebound.workload.files import read_backward_log
from wirebound.workload.modelled import scaled
from wirebound.workload.record import Kind, Source, Workload, data_parallel
from wirebound.workload.schedule import Schedule
from wirebound.workload.zoo import load

STEP_S = {
    "resnet50": 0.12808580219559176,
    "resnet101": 0.19200599479476405,
    "vgg16": 0.19452352295080985,
}
"""One-GPU iteration times in the published simulator [s]: V100, 32 images, fp32."""

BATCH = 32
RATES_BPS = tuple(float(rate * GIGA) for rate in (1, 10, 25, 40, 100))
RATIOS = (1.0, 2.0, 5.0, 10.0, 50.0, 100.0)
WORKERS = (16, 32, 64)
GPUS_PER_SERVER = 8

PUBLISHED_ADD = Reduction(
    table=tuple((40.0 * 2**k, max(9.5e-6, 3 * 40.0 * 2**k / 827e9)) for k in range(25))
)
"""Stand-in for the published vector-add table from two of its properties: 9.5 us up to
about 1 MB (a kernel launch), then three times the bytes at 827 GB/s of memory traffic."""


class Study(msgspec.Struct, frozen=True):
    """The inputs of the paper's simulator.

    Attributes:
        workloads: By model, each a whole step on one GPU.
        network: One port a worker, priced as the paper prices it.
        is_published: Read from the published logs rather than made from the zoo.
    """

    workloads: Mapping[str, Workload]
    network: Network
    is_published: bool


def study(data: Path | None) -> Study:
    """The paper's inputs: its published logs in a folder, or the zoo in their place.

    Args:
        data: Folder that holds `*.bk.log` and `cuda_vec_add.log`, at any depth.

    Raises:
        ReadError: A folder or file that is missing or not what it should be.
    """
    if data is None:
        workloads = {name: scaled(load(name), step_s, BATCH) for name, step_s in STEP_S.items()}
        return Study(workloads, _network(PUBLISHED_ADD), is_published=False)
    if not data.is_dir():
        raise ReadError(f"{data}: no such folder, expected one with the paper's published logs")
    table = read_add_table(_find(data, "cuda_vec_add.log"))
    workloads = {
        name: _whole_step(read_backward_log(_find(data, f"{name}.bk.log")), step_s)
        for name, step_s in STEP_S.items()
    }
    return Study(workloads, _network(table), is_published=True)


def scenario(workers: int, algorithm: str = "ring", gpus_per_node: int = 1) -> Scenario:
    """The paper's rule for a number of GPUs; other algorithms for comparison."""
    return Scenario(
        workers=workers,
        gpus_per_node=gpus_per_node,
        algorithm=algorithm,
        schedule=Schedule(bucketing=PaperFusion()),
    )


def scaling_factors(
    workload: Workload,
    network: Network,
    base: Scenario,
    workers: tuple[int, ...],
    ratios: tuple[float, ...] = (1.0,),
) -> NDArray[np.float64]:
    """Simulated scaling factors, shaped (workers, `RATES_BPS`, ratios)."""
    axes = (np.array(workers, dtype=np.float64), np.array(RATES_BPS), np.array(ratios))
    grid = np.meshgrid(*axes, indexing="ij")
    names = ("workers", "link_bps", "compression_ratio")
    columns = {name: values.ravel() for name, values in zip(names, grid, strict=True)}
    program = Program(workload, network, base)
    return (program.alone_s() / program.step_s(columns)).reshape(grid[0].shape)


def average_utilization(workload: Workload, network: Network) -> NDArray[np.float64]:
    """Share of the line rate averaged over the step, idle phases included, at `RATES_BPS`.

    What a perfectly used network would show on the paper's network monitor (64 GPUs).
    """
    program = Program(workload, network, scenario(max(WORKERS)))
    columns = {"link_bps": np.array(RATES_BPS)}
    return program.link_s(columns) / program.step_s(columns)


def read_add_table(path: Path) -> Reduction:
    """Read the published vector-add table: `bytes,seconds` a line, sizes ascending.

    Raises:
        ReadError: A line that is not a size and a time, or no line at all.
    """
    lines = read_text(path, "lines of bytes,seconds").splitlines()
    points: list[tuple[float, float]] = []
    for number, line in enumerate(lines, start=1):
        try:
            nbytes, seconds = (float(field) for field in line.split(","))
        except ValueError:
            raise ReadError(
                f"{path}: line {number} is {line[:40]!r}, expected bytes,seconds such as 40,1e-05"
            ) from None
        points.append((nbytes, seconds))
    if not points:
        raise ReadError(f"{path}: empty, expected lines of bytes,seconds such as 40,1.04e-05")
    try:
        return Reduction(table=tuple(points))
    except NetworkError as error:
        raise ReadError(f"{path}: {error.message}", error.hint) from None


def _whole_step(backward: Workload, step_s: float) -> Workload:
    """The log's backward pass and, before it, everything else of the published step time."""
    backward_s = backward.span_s(Kind.BACKWARD)
    return data_parallel(
        backward.name,
        backward.gradients,
        forward_s=step_s - backward_s,
        backward_s=backward_s,
        batch=BATCH,
        source=Source("log", "published backward log and step time, V100, 32 images, fp32"),
    )


def _network(additions: Reduction) -> Network:
    return Network(
        name="paper",
        inter=Tier(name="port", bandwidth_bps=RATES_BPS[-1], alpha_s=0.0),
        gpus_per_node=1,
        reduction=additions,
        source="Zhang et al. (NetAI 2020): line rate, no latency, measured additions",
    )


def _find(folder: Path, name: str) -> Path:
    found = sorted(folder.rglob(name))
    if not found:
        raise ReadError(f"{folder}: no file {name} in it, expected the paper's published logs")
    return found[0]
