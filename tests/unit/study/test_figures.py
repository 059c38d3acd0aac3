"""The paper's figures from runs that were made up, by hand."""

import io
import xml.etree.ElementTree as ET

import msgspec
import pytest

from wirebound.report.charts import chart, svg
from wirebound.report.console import console
from wirebound.report.figures import show_figures
from wirebound.study.figures import Figure, Point, figures
from wirebound.study.record import Config, Mode, Processors, Run, Traffic
from wirebound.workload.record import data_parallel
from wirebound.workload.recorded import Recorded
from wirebound.workload.reduce import Reduced
from wirebound.workload.schedule import Schedule


def run(
    step_s: float,
    workers: int = 2,
    link_bps: float | None = None,
    mode: Mode = "joined",
    repeat: int = 0,
) -> Run:
    """A run of so long a step, of which it computes 80 ms."""
    config = Config("net", workers, mode, link_bps, 2**20, 32, 1, repeat)
    recorded = Recorded(
        step_s=step_s, alone_s=0.08, exposed_wait_s=0.0, comm_s=0.0, collectives=(), steps=10,
        ranks=1, world_size=1, local_world_size=1, hosts=("host0",), device="cpu", backend="gloo",
    )  # fmt: skip
    carrying = Traffic(
        host="host0", interface="veth0", is_carrying=True, rate_bps=link_bps, sent_bytes=1.0,
        received_bytes=1.0, mean_sent_bps=1e8, mean_received_bps=2e8, busy_sent_bps=8e8,
        busy_received_bps=9e8,
    )  # fmt: skip
    idle = Traffic(
        host="host0", interface="lo", is_carrying=False, rate_bps=None, sent_bytes=0.0,
        received_bytes=0.0, mean_sent_bps=0.0, mean_received_bps=0.0, busy_sent_bps=0.0,
        busy_received_bps=0.0,
    )  # fmt: skip
    return Run(
        f"{workers}-{link_bps}-{mode}-{repeat}", config, 0.0, 1.0,
        is_oversubscribed=workers > 2,
        reduced=Reduced(data_parallel("net", [], backward_s=0.08), Schedule(), recorded),
        traffic=(carrying, idle), processors=(Processors("host0", (0,), 0.7, 0.9),),
    )  # fmt: skip


RUNS = (
    run(0.10, workers=1),
    run(0.09, mode="apart"),
    run(0.125),
    run(0.2, link_bps=1e9),
    run(0.3, link_bps=1e9, repeat=1),
    run(0.25, link_bps=1e9, repeat=2),
    run(0.4, workers=3),
)


def by_number(runs: tuple[Run, ...] = RUNS) -> dict[int, Figure]:
    """Figures of the runs; a step on 1 Gbit/s is predicted to take 0.2 s."""
    return {one.number: one for one in figures(runs, {RUNS[4].config: 0.2})}


def points(figure: Figure, name: str) -> tuple[Point, ...]:
    """Of the series of that name."""
    [found] = [one for one in figure.series if one.name == name]
    return found.points


def test_scaling_factors_are_one_workers_step_over_the_step() -> None:
    """Median, smallest and largest of the repeats; the link without a limit comes last."""
    found = points(by_number()[3], "2 workers, cap 1MiB")
    assert [point.x for point in found] == [1e9, None]
    assert (found[0].low, found[0].y, found[0].high) == pytest.approx((1 / 3, 0.4, 0.5))
    assert found[1].y == pytest.approx(0.8)
    assert points(by_number()[3], "3 workers, cap 1MiB (oversubscribed)")[0].y == 0.25


def test_over_workers() -> None:
    """Only runs without a limit; computation with and without communication."""
    assert [p.x for p in points(by_number()[1], "cap 1MiB")] == [1.0, 2.0, 3.0]
    assert [p.x for p in points(by_number()[2], "without communication")] == [1.0, 2.0]
    assert points(by_number()[2], "together, cap 1MiB")[0].y == 0.08


def test_utilization_has_its_name_and_its_interface() -> None:
    """The busier direction over the rate; the idle interface is named as idle."""
    figure = by_number()[4]
    assert points(figure, "communicating, veth0, cap 1MiB")[0].y == pytest.approx(0.9)
    assert points(figure, "average, veth0, cap 1MiB")[0].y == pytest.approx(0.2)
    assert points(figure, "average, lo (idle), cap 1MiB")[0].y == 0
    assert points(by_number()[5], "communicating, cap 1MiB")[0].y == 0.9


def test_measured_beside_predicted() -> None:
    """Only where there is a prediction."""
    figure = by_number()[6]
    assert points(figure, "predicted, cap 1MiB")[0].y == pytest.approx(0.5)
    assert points(figure, "measured, cap 1MiB")[0].y == pytest.approx(1 / 3)
    assert not [p for one in figure.series for p in one.points if p.x is None]


def test_failed_runs_have_no_points() -> None:
    """And a study without runs has no figures."""
    failed = msgspec.structs.replace(RUNS[2], reduced=None, failure="it broke")
    assert points(by_number((*RUNS[:2], failed, *RUNS[3:]))[1], "cap 1MiB")[0].x == 1.0
    assert figures([failed], {}) == ()


def test_tables_fit_a_narrow_terminal() -> None:
    """A row a series, a column a place."""
    out = io.StringIO()
    show_figures(console(out, width=60), list(by_number().values()))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 60
    assert "Figure 3. Scaling factor over bandwidth" in text
    assert "40.0" in text


def test_charts_have_a_row_for_each_point_and_can_be_drawn() -> None:
    """Every number of the figure is in the specification, and a picture comes out."""
    pytest.importorskip("vl_convert", reason="needs vl-convert-python")
    for figure in by_number().values():
        spec = chart(figure)
        assert len(spec["data"]["values"]) == sum(len(one.points) for one in figure.series)
        picture = ET.fromstring(svg(spec))  # noqa: S314 - our own
        words = " ".join(picture.itertext())
        assert figure.title in words
        assert "none" in words or figure.x == "workers" or figure.number in (4, 6)
