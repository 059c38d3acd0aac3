"""From the recordings of one run to what it measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from wirebound.errors import StudyError
from wirebound.readers import read_trace
from wirebound.readers.monitor import FILES, Monitor, read_monitor
from wirebound.study.plan import Planned
from wirebound.study.record import Processors, Run, Traffic
from wirebound.study.utilization import processors, traffic, windows
from wirebound.trace import STEP, Rank, Trace
from wirebound.workload.reduce import Reduced, reduce


class Host(msgspec.Struct, frozen=True):
    """What is known of a host without looking at its recording.

    Attributes:
        cores: That its workers may use; None where unknown.
        rates_bps: Of its links, by interface; None for what it says itself [bit/s].
    """

    cores: tuple[int, ...] | None = None
    rates_bps: Mapping[str, float | None] | None = None


class Measured(msgspec.Struct, frozen=True):
    """What one recording holds; the fields are those of a `Run`."""

    reduced: Reduced
    step_s: tuple[tuple[float, ...], ...]
    traffic: tuple[Traffic, ...]
    processors: tuple[Processors, ...]
    hook_us_per_gradient: float | None


def recordings(folder: Path, planned: Planned) -> list[Path]:
    """Where a run keeps its recordings: one, or one a worker if they run apart."""
    if planned.config.mode == "joined":
        return [folder]
    return [own_folder(folder, number) for number in range(planned.config.workers)]


def own_folder(folder: Path, worker: int | str) -> Path:
    """Where one of several workers that run apart keeps its recording."""
    return folder / f"worker{worker}"


def gather(run: Run, folder: Path, planned: Planned, hosts: Sequence[Host], warmup: int) -> Run:
    """A run with what its recordings say.

    Args:
        run: What is known already.
        folder: Of the run.
        planned: What was to be run.
        hosts: What is known of each, in the order of ranks; empty if nothing is.
        warmup: Complete steps left out first.

    Raises:
        WireboundError: A recording is missing, or holds no step that can be reduced.
    """
    places = recordings(folder, planned)
    is_apart = planned.config.mode == "apart"
    found = [
        _measured(place, planned, number if is_apart else None, hosts, warmup)
        for number, place in enumerate(places)
    ]
    return msgspec.structs.replace(
        run,
        reduced=found[0].reduced,
        step_s=tuple(own for one in found for own in one.step_s),
        traffic=tuple(own for one in found for own in one.traffic),
        processors=tuple(own for one in found for own in one.processors),
        hook_us_per_gradient=found[0].hook_us_per_gradient,
    )


def _measured(
    place: Path, planned: Planned, worker: int | None, hosts: Sequence[Host], warmup: int
) -> Measured:
    """What one recording holds.

    Args:
        place: Its folder.
        planned: The run.
        worker: Whose it is, where each has its own.
        hosts: What is known of them.
        warmup: Complete steps left out first.
    """
    trace, node_of = _anonymous(read_trace(place), worker or 0)
    expected = planned.config.workers if worker is None else 1
    if len(trace.ranks) != expected:
        raise StudyError(f"{len(trace.ranks)} of {expected} ranks left a recording")
    reduced = reduce(trace, planned.config.script, warmup)
    steps = trace.complete_steps[warmup:]
    carried: list[Traffic] = []
    computed: list[Processors] = []
    for monitor in map(read_monitor, sorted(place.glob(FILES))):
        number = node_of.get(monitor.rank)
        if number is None:
            continue
        host = hosts[number] if number < len(hosts) else Host()
        ranks = tuple(rank for rank, other in node_of.items() if other == number)
        during = windows(trace, ranks, steps, monitor)
        if during is None:
            continue
        carried += traffic(f"host{number}", monitor, during, _rates_bps(host, monitor))
        own = processors(f"host{number}", monitor, during, host.cores)
        computed += [] if own is None else [own]
    return Measured(
        reduced=reduced,
        step_s=_step_s(trace, steps),
        traffic=tuple(sorted(carried, key=lambda one: _place(one.host))),
        processors=tuple(sorted(computed, key=lambda one: _place(one.host))),
        hook_us_per_gradient=trace.ranks[0].hook_us_per_gradient,
    )


def _place(host: str) -> int:
    return int(host.removeprefix("host"))


def _rates_bps(host: Host, monitor: Monitor) -> Mapping[str, float | None]:
    if host.rates_bps is not None:
        return host.rates_bps
    return {one.name: one.speed_bps for one in monitor.interfaces}


def _anonymous(trace: Trace, first: int) -> tuple[Trace, dict[int, int]]:
    """A trace whose hosts are called by number, and the host of each rank.

    Hosts of a lab share the name of the machine; what tells them apart is their agent.

    Args:
        trace: As it was read.
        first: Number of its first host.
    """
    keys = dict.fromkeys((rank.node, rank.host) for rank in trace.ranks)
    numbers = {key: first + number for number, key in enumerate(keys)}
    node_of = {rank.rank: numbers[rank.node, rank.host] for rank in trace.ranks}
    ranks = tuple(_renamed(rank, node_of[rank.rank]) for rank in trace.ranks)
    return msgspec.structs.replace(trace, ranks=ranks), node_of


def _renamed(rank: Rank, number: int) -> Rank:
    return msgspec.structs.replace(rank, host=f"host{number}")


def _step_s(trace: Trace, steps: tuple[int, ...]) -> tuple[tuple[float, ...], ...]:
    """Time of each step of each rank, in order."""
    chosen = trace.select(steps=steps, kinds=[STEP])
    ops = chosen.operations
    rows = []
    for rank in chosen.ranks:
        own = np.flatnonzero(ops.rank == rank.rank)
        own = own[np.argsort(ops.step[own], kind="stable")]
        rows.append(tuple(chosen.duration_s[own].tolist()))
    return tuple(rows)
