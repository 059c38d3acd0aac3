"""Verdicts in the terminal: every figure shown is the verdict's."""

import io
from collections.abc import Sequence
from typing import Any

import pytest

from wirebound.api import whatif
from wirebound.report.console import console
from wirebound.report.terminal import show_all, threshold_sentences
from wirebound.units import format_rate, format_ratio, format_time
from wirebound.verdict.record import Verdict
from wirebound.workload.modelled import scaled
from wirebound.workload.record import Gradient, Source, Workload, data_parallel
from wirebound.workload.zoo import load

JOB = scaled(load("resnet50"), 0.128, 32)
HOSTILE = "\x1b]0;title\x07[red]\u202ex[/]\n"


def grid(workload: Workload = JOB, **keys: Any) -> list[Verdict]:  # noqa: ANN401 - as the API
    """Verdicts at 10 Gbit/s on 64 workers, unless told otherwise."""
    return whatif(workload, **{"workers": 64, "link": "10Gbps", **keys})


def shown(verdicts: Sequence[Verdict], width: int = 80) -> str:
    """What the terminal shows."""
    file = io.StringIO()
    show_all(console(file, width), verdicts)
    return file.getvalue()


def unwrapped(text: str) -> str:
    """The text with its lines joined."""
    return " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_figures_are_the_verdicts(width: int) -> None:
    """Headline, bill and causes show the verdict's own numbers."""
    (verdict,) = grid(gpus_per_node=8, intra="nvlink2", algorithm="hierarchical")
    text = unwrapped(shown([verdict], width))
    assert f"{verdict.word.value}: " in text
    assert f"A step takes {format_time(verdict.step_s)} " in text
    assert f"alone {format_time(verdict.alone_s)}." in text
    assert f"The network costs {format_time(verdict.exposed_comm_s)} " in text
    assert f"({format_ratio(verdict.network_share)})" in text
    assert f"scaling factor {format_ratio(verdict.scaling_factor)}." in text
    assert f"Computed for {verdict.bound}." in text
    for seconds in verdict.bill.values():
        assert f"{format_time(seconds)} {format_ratio(seconds / verdict.step_s)}" in text
    for cause in verdict.causes:
        assert (
            f"{cause.word.value} {format_time(cause.seconds)} {cause.evidence.split()[0]}" in text
        )
    for sentence in threshold_sentences(verdict):
        assert sentence in text
    for sentence in (*verdict.assumptions, *verdict.warnings):
        assert sentence in text


def test_thresholds_in_words() -> None:
    """Each threshold's value is in its sentence, in the unit people use."""
    (verdict,) = grid()
    link = verdict.thresholds["link_for_target"].value
    assert link is not None
    sentences = " ".join(threshold_sentences(verdict))
    assert f"needs a link of {format_rate(link)}" in sentences
    assert "bisection" not in sentences


def test_thresholds_that_hold_already() -> None:
    """A target that is met is told as a margin."""
    (verdict,) = grid(link="400Gbps")
    sentences = " ".join(threshold_sentences(verdict))
    assert "holds down to a link of" in sentences
    assert "Compressing" not in sentences


def test_thresholds_that_never_hold() -> None:
    """A target nothing reaches is told so, one sentence each."""
    gradients = [Gradient("g", 10**6, 0.01)]
    job = data_parallel("job", gradients, backward_s=0.01)
    (verdict,) = whatif(job, workers=512, link="10Gbps", latency="10ms", target=0.99)
    sentences = threshold_sentences(verdict)
    assert "No link gives a scaling factor of 99.0 %." in sentences
    assert "No compression ratio gives 99.0 %." in sentences
    assert "On this link no transport gives 99.0 %, not even a perfect one." in sentences


def test_found_by_bisection() -> None:
    """What was not read off an envelope says so."""
    job = data_parallel("job", [Gradient("g", 10**7, 0.01)], backward_s=0.01, forward_s=0.01)
    (verdict,) = whatif(job, workers=8, link="10Gbps", streams=2)
    assert any("(found by bisection)" in text for text in threshold_sentences(verdict))


def test_one_worker() -> None:
    """Alone there is nothing to change."""
    text = shown(grid(workers=1))
    assert "What would change it" not in text
    assert "COMPUTE: the network is not the limit." in text
    assert "resnet50: 1 worker, " in text
    assert "Computed for" not in text
    assert "scaling factor 100 %" in text


def test_range_is_shown() -> None:
    """The workload's uncertainty is part of the answer."""
    (verdict,) = grid()
    low, high = verdict.step_range_s
    assert f"({format_time(low)} to {format_time(high)} within" in unwrapped(shown([verdict]))


def test_grid_shows_what_varies() -> None:
    """A table has a column for each axis, in the words of the flags, and a row a scenario."""
    verdicts = grid(workers=[8, 64], link=["10Gbps", "25Gbps"], algorithm=["ring", "tree"])
    text = shown(verdicts, 100)
    assert "8 scenarios" in text
    header = next(row for row in text.splitlines() if row.startswith("workers"))
    assert header.split() == ["workers", "link", "algorithm", "step", "scaling", "share", "limit"]
    rows = [row.split() for row in text.splitlines() if "Gbit/s" in row]
    for row, verdict in zip(rows, verdicts, strict=True):
        scenario = verdict.scenario
        expected = (
            f"{scenario['workers']} {format_rate(float(str(scenario['link_bps'])))} "
            f"{scenario['algorithm']} {format_time(verdict.step_s)} "
            f"{format_ratio(verdict.scaling_factor)} {format_ratio(verdict.network_share)} "
            f"{verdict.word.value}"
        )
        assert row == expected.split()


@pytest.mark.parametrize(
    ("keys", "column", "values"),
    [
        ({"bucket_cap": ["1MiB", "25MiB"]}, "bucket_cap", ["1.05 MB", "26.2 MB"]),
        ({"latency": ["0s", "20us"]}, "latency", ["0 ns", "20.0 µs"]),
        ({"efficiency": ["40%", "perfect"]}, "efficiency", ["40.0 %", "100 %"]),
        ({"compression": [1, 2.5]}, "compression", ["1", "2.5"]),
        ({"jitter": ["none", "normal:5%"]}, "jitter", ["none", "normal:5.00 %"]),
        ({"encode": ["10GB/s", "20GB/s"]}, "encode", ["10.0 GB/s", "20.0 GB/s"]),
        ({"sync_every_micro_step": [False, True]}, "sync_every_micro_step", ["false", "true"]),
        ({"bucketing": ["ddp", "one"]}, "bucketing", ["ddp", "one"]),
        ({"partition": ["1MB", "2MB"]}, "partition", ["1.00 MB", "2.00 MB"]),
        ({"compute_inflation": ["0%", "10%"]}, "compute_inflation", ["0 %", "10.0 %"]),
    ],
)
def test_values_as_people_write_them(keys: dict[str, Any], column: str, values: list[str]) -> None:
    """Each field is shown with its unit, under the name of its flag."""
    rows = shown(grid(**keys), 120).splitlines()
    assert rows[2].split()[0] == column
    assert [
        row[: len(column) + 12].strip().startswith(value)
        for row, value in zip(rows[3:], values, strict=False)
    ] == [
        True,
        True,
    ]


def test_grid_with_a_target() -> None:
    """With a target each row says which link would reach it."""
    verdicts = grid(workers=[1, 8, 64], target="90%")
    rows = shown(verdicts, 100).splitlines()
    assert rows[1].split() == ["network", "link", "for"]
    assert "90.0 %" in rows[2]
    assert "Gbit/s" not in rows[3]
    for row, verdict in zip(rows[4:6], verdicts[1:], strict=True):
        value = verdict.thresholds["link_for_target"].value
        assert value is not None
        assert format_rate(value) in row


def test_grid_with_a_target_out_of_reach() -> None:
    """Where no link reaches the target the row says none."""
    rows = shown(grid(latency="10ms", workers=[64, 128], target="99%"), 100).splitlines()
    assert [row.split()[-2] for row in rows[3:5]] == ["none", "none"]


def test_warnings_of_any_row() -> None:
    """A warning of the last scenario is not lost, and none is repeated."""
    text = unwrapped(shown(grid(compression=[1, 2, 5])))
    assert text.count("compression is priced at zero") == 1


def test_grid_of_one_difference_in_policy() -> None:
    """Fields that only one policy has make no column."""
    text = shown(grid(bucketing=["one", "ddp", "horovod"]), 120)
    assert "cycle_time" not in text
    assert "none" not in text.lower()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_no_trailing_spaces(width: int) -> None:
    """Lines end where their text ends, and fit."""
    for text in (shown(grid(), width), shown(grid(workers=[2, 4]), width)):
        rows = text.splitlines()
        assert rows == [row.rstrip() for row in rows]
        assert max(len(row) for row in rows) <= width


def test_hostile_names() -> None:
    """Names out of a file are shown, not obeyed, in a verdict and in a grid."""
    hostile = data_parallel(
        HOSTILE,
        [Gradient(f"{HOSTILE}{k}", 10**7, 0.01) for k in range(2)],
        backward_s=0.01,
        source=Source("modelled", HOSTILE),
    )
    for verdicts in (grid(hostile), grid(hostile, workers=[2, 4])):
        text = shown(verdicts, 200)
        assert all(row.isprintable() for row in text.split("\n"))
        assert "\\x1b]0;title\\x07[red]\\u202ex[/]\\n" in text


def test_long_names() -> None:
    """A name of a million characters leaves room for the answer."""
    job = data_parallel("n" * 10**6, [Gradient("g", 10**7, 0.01)], backward_s=0.01)
    assert len(shown(grid(job))) < 10_000
