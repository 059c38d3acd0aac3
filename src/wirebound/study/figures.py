"""The paper's Figures 1 to 6 from a study: what was measured, as series of points.

Zhang et al. (NetAI 2020) show, of three networks on AWS: the scaling factor over workers
(1), the computation time over workers (2), the scaling factor (3), the network's (4) and
the processor's utilization (5) over bandwidth, and the scaling factor with the network
fully used (6). Here 6 is the measured scaling factor beside the predicted one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

import msgspec

from wirebound.study.record import Config, Run
from wirebound.units import format_exact_size


class Point(msgspec.Struct, frozen=True):
    """One place of a series, over the repeats.

    Attributes:
        x: Workers, or rate of the link [bit/s]; None for a link without a limit.
        y: Median of the repeats.
        low: Smallest of them.
        high: Largest of them.
    """

    x: float | None
    y: float
    low: float
    high: float


class Series(msgspec.Struct, frozen=True):
    """Points that belong together.

    Attributes:
        panel: Script that they are of.
        name: What they are, within the panel.
        points: By ascending x, the link without a limit last.
    """

    panel: str
    name: str
    points: tuple[Point, ...]


class Figure(msgspec.Struct, frozen=True):
    """One figure.

    Attributes:
        number: In the paper.
        title: What it shows.
        x: `workers` or `link`.
        y: What is measured, with its unit: a ratio or seconds.
        series: Of all scripts.
    """

    number: int
    title: str
    x: str
    y: str
    series: tuple[Series, ...]


Found = Iterator[tuple[str, str, float | None, float]]
"""Panel, series, x and y of each run, in any order."""


def figures(runs: Sequence[Run], predicted_s: Mapping[Config, float]) -> tuple[Figure, ...]:
    """All figures that a study has points for.

    Args:
        runs: Of the study; failed ones are left out.
        predicted_s: Step times by config, for figure 6 [s].
    """
    done = [run for run in runs if run.reduced is not None]
    alone_s = _alone_s(done)
    joined = [run for run in done if run.config.mode == "joined" and run.config.workers > 1]
    made = (
        _figure(1, "Scaling factor over workers", "workers", "ratio", _over_workers(done, alone_s)),
        _figure(2, "Computation time over workers", "workers", "seconds", _computation(done)),
        _figure(3, "Scaling factor over bandwidth", "link", "ratio", _over_links(joined, alone_s)),
        _figure(4, "Network utilization over bandwidth", "link", "ratio", _utilization(joined)),
        _figure(5, "Processor utilization over bandwidth", "link", "ratio", _processors(joined)),
        _figure(
            6,
            "Scaling factor, measured and predicted",
            "link",
            "ratio",
            _measured_and_predicted(joined, alone_s, predicted_s),
        ),
    )
    return tuple(figure for figure in made if figure.series)


def _figure(number: int, title: str, x: str, y: str, found: Found) -> Figure:
    """Gather values into series, in the order in which they first appear."""
    places: dict[tuple[str, str], dict[float | None, list[float]]] = {}
    for panel, name, place, value in found:
        places.setdefault((panel, name), {}).setdefault(place, []).append(value)
    return Figure(
        number,
        title,
        x,
        y,
        tuple(
            Series(
                panel,
                name,
                tuple(
                    Point(place, median(values), min(values), max(values))
                    for place, values in sorted(by_place.items(), key=lambda item: _last(item[0]))
                ),
            )
            for (panel, name), by_place in places.items()
        ),
    )


def _last(place: float | None) -> float:
    return float("inf") if place is None else place


def _step_s(run: Run) -> float:
    assert run.reduced is not None  # noqa: S101 - failed runs are left out
    return run.reduced.recorded.step_s


def _job(config: Config) -> tuple[str, int, int]:
    return config.script, config.batch, config.accumulation


def _alone_s(runs: Iterable[Run]) -> dict[tuple[str, int, int], float]:
    """Median step of one worker alone, by script, batch and accumulation [s]."""
    steps: dict[tuple[str, int, int], list[float]] = {}
    for run in runs:
        if run.config.workers == 1:
            steps.setdefault(_job(run.config), []).append(_step_s(run))
    return {job: median(each) for job, each in steps.items()}


def _cap(run: Run) -> str:
    return f"cap {format_exact_size(run.config.bucket_cap_bytes)}"


def _setting(run: Run) -> str:
    """What tells the runs of one panel and link apart."""
    shared = " (oversubscribed)" if run.is_oversubscribed else ""
    return f"{run.config.workers} workers, {_cap(run)}{shared}"


def _over_workers(runs: Iterable[Run], alone_s: Mapping[tuple[str, int, int], float]) -> Found:
    for run in runs:
        config = run.config
        if config.mode == "joined" and config.link_bps is None and _job(config) in alone_s:
            factor = alone_s[_job(config)] / _step_s(run)
            yield config.script, _cap(run), float(config.workers), factor


def _computation(runs: Iterable[Run]) -> Found:
    for run in runs:
        config, reduced = run.config, run.reduced
        assert reduced is not None  # noqa: S101 - failed runs are left out
        if config.link_bps is None:
            name = "without communication"
            if config.mode == "joined" and config.workers > 1:
                name = f"together, {_cap(run)}"
            yield config.script, name, float(config.workers), reduced.recorded.alone_s


def _over_links(runs: Iterable[Run], alone_s: Mapping[tuple[str, int, int], float]) -> Found:
    for run in runs:
        if _job(run.config) in alone_s:
            factor = alone_s[_job(run.config)] / _step_s(run)
            yield run.config.script, _setting(run), run.config.link_bps, factor


def _measured_and_predicted(
    runs: Iterable[Run],
    alone_s: Mapping[tuple[str, int, int], float],
    predicted_s: Mapping[Config, float],
) -> Found:
    for run in runs:
        config = run.config
        if _job(config) not in alone_s or config not in predicted_s or run.is_oversubscribed:
            continue
        for name, step_s in (("measured", _step_s(run)), ("predicted", predicted_s[config])):
            factor = alone_s[_job(config)] / step_s
            yield config.script, f"{name}, {_cap(run)}", config.link_bps, factor


def _utilization(runs: Iterable[Run]) -> Found:
    """Of the busier direction of each interface with a known rate, over its rate."""
    for run in runs:
        for one in run.traffic:
            rate_bps = run.config.link_bps
            if rate_bps is None or run.is_oversubscribed:
                continue
            idle = "" if one.is_carrying else " (idle)"
            busy = max(one.busy_sent_bps, one.busy_received_bps) / rate_bps
            mean = max(one.mean_sent_bps, one.mean_received_bps) / rate_bps
            place = f"{one.interface}{idle}, {_cap(run)}"
            if one.is_carrying:
                yield run.config.script, f"communicating, {place}", rate_bps, busy
            yield run.config.script, f"average, {place}", rate_bps, mean


def _processors(runs: Iterable[Run]) -> Found:
    for run in runs:
        if run.is_oversubscribed:
            continue
        for one in run.processors:
            if one.communicating is not None:
                name = f"communicating, {_cap(run)}"
                yield run.config.script, name, run.config.link_bps, one.communicating
            yield run.config.script, f"average, {_cap(run)}", run.config.link_bps, one.mean
