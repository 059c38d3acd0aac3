"""The answer: what a step costs, what of it is whose fault, and where that changes."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from wirebound.simulate.thresholds import Threshold
from wirebound.workload.record import Source

SCHEMA_VERSION = 1


class Word(StrEnum):
    """What limits a step, in one word."""

    COMPUTE = "COMPUTE"
    """The network is not the limit."""
    LINK = "LINK"
    """The link is full; a faster one helps."""
    TRANSPORT = "TRANSPORT"
    """Communication hurts, but the link is far from full."""
    LATENCY = "LATENCY"
    """Many small or dependent messages."""
    OVERLAP = "OVERLAP"
    """Enough capacity, wrong order: the tail, one late large bucket."""
    VOLUME = "VOLUME"
    """Self-inflicted traffic: a reduction after every micro-step."""
    INTRA_NODE = "INTRA_NODE"
    """The way inside the node: PCIe, NVLink, host."""
    SKEW = "SKEW"
    """Waiting for a late rank."""
    INPUT = "INPUT"
    """The data pipeline or the host."""
    UNDETERMINED = "UNDETERMINED"
    """The numbers do not decide it."""


class Cause(msgspec.Struct, frozen=True):
    """One part of the step beyond what one worker computes.

    Attributes:
        word: What it is.
        seconds: What removing it would save of the step [s], after the causes before it
            in the order of `decompose`.
        evidence: One sentence with the numbers behind it.
    """

    word: Word
    seconds: float
    evidence: str


class ErrorBar(msgspec.Struct, frozen=True):
    """Where the step time lies, going by predictions that were held against measured runs.

    Attributes:
        study: That measured them.
        runs: How many were predicted.
        p90: Error that nine out of ten of these predictions stayed within, relative to the
            measured step.
        low_s: Step time whose prediction that much too long gives this one [s].
        high_s: And that much too short [s]; None where that may be any time.
    """

    study: str
    runs: int
    p90: float
    low_s: float
    high_s: float | None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for one scenario; every number anybody shows is a field of it.

    Attributes:
        word: What limits the step, in one word: the cause to name first.
        workload: Name of the workload.
        source: Where its seconds come from.
        network: Name of the network.
        scenario: The scenario's fields, in base units.
        bound: Which algorithm's step time this is, and what it bounds.
        step_s: Step time on all workers [s].
        step_range_s: The same at both ends of the workload's uncertainty [s].
        alone_s: Step time on one worker [s].
        free_network_s: Step time if links were infinite and latency zero [s].
        exposed_comm_s: step_s - free_network_s: communication that nothing covers [s].
        scaling_factor: alone_s / step_s.
        network_share: (step_s - free_network_s) / step_s.
        utilization: Share of the line rate while communicating.
        average_utilization: Share of the line rate averaged over the step.
        bill: Critical-path seconds by resource [s]; they add up to step_s.
        bill_shares: The same over step_s: also the percent of the step that one percent
            off the price of that resource saves.
        causes: Largest first; they add up to step_s.
        thresholds: Where the answer changes, by name: `link_for_target`,
            `compression_for_target`, `efficiency_for_target`, `batch_for_target`,
            `workers_for_target`, and `link_enough`, beyond which an infinite link gains
            less than 1 % of the step; with a measurement `effective_link`, the line rate
            whose perfect use explains it.
        target: The scaling factor the thresholds are for, where there is one.
        measured_scaling_factor: What was measured, where somebody said it.
        error_bar: What a validation says of the step time, where one was named.
        is_exact: False where steps never settled into a period.
        assumptions: What was assumed because nobody said it.
        warnings: What makes the numbers less certain than they look.
        next_measurement: What to measure to know better.
    """

    schema_version: int = SCHEMA_VERSION
    word: Word
    workload: str
    source: Source
    network: str
    scenario: Mapping[str, object]
    bound: str
    step_s: float
    step_range_s: tuple[float, float]
    alone_s: float
    free_network_s: float
    exposed_comm_s: float
    scaling_factor: float
    network_share: float
    utilization: float
    average_utilization: float
    bill: Mapping[str, float]
    bill_shares: Mapping[str, float]
    causes: tuple[Cause, ...]
    thresholds: Mapping[str, Threshold] = {}
    target: float | None = None
    measured_scaling_factor: float | None = None
    error_bar: ErrorBar | None = None
    is_exact: bool = True
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    next_measurement: str | None = None


NETWORK_WORDS = frozenset(
    {Word.LINK, Word.TRANSPORT, Word.LATENCY, Word.OVERLAP, Word.VOLUME, Word.INTRA_NODE}
)

SMALL_SHARE = 0.05
"""A share of the step below this is not worth money."""


def headline(causes: Iterable[Cause], step_s: float, network_share: float) -> Word:
    """The cause to name first: the largest that can be removed, or COMPUTE if they are small.

    Args:
        causes: Of one step.
        step_s: Its time [s].
        network_share: If small, no word for the network is named, whatever its seconds.
    """
    is_small = network_share < SMALL_SHARE
    removable = [
        cause
        for cause in causes
        if cause.word is not Word.COMPUTE and not (is_small and cause.word in NETWORK_WORDS)
    ]
    largest = max(removable, key=lambda cause: cause.seconds, default=None)
    if largest is None or (is_small and largest.seconds < SMALL_SHARE * step_s):
        return Word.COMPUTE
    return largest.word
