"""From measured samples to a network: an alpha, a line rate, an efficiency by message size.

A collective of S bytes takes M·alpha + R + B·8/rate/efficiency(S), with its messages M,
additions R and bytes B from `collectives`. The formulas and their limits are in
`docs/measure-network.md`.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import PurePath

import msgspec
import numpy as np
from numpy.typing import NDArray

from wirebound.errors import NetworkError
from wirebound.network.measured import LOCAL, adds_s, legs, number, per_node, predict, tier_s
from wirebound.network.record import Contention, Fit, Network, Points, Reduction, Tier
from wirebound.samples import Measured, Sample, Samples
from wirebound.units import bits_per_second, bytes_per_second, format_rate, format_time

Array = NDArray[np.float64]

CONTRADICTION = 2.0
"""Two measurements of the same thing this far apart are not of the same network."""

RISE = 2.0
"""How much longer than the shortest a sample must take to tell a rate from noise."""

EXCESS = 0.05
"""How far the largest collective may exceed a given line rate: clocks and bursts do."""

FREE_BPS = 1e18
"""Rate of a tier whose cost was measured as part of another."""

Located = tuple[str, Sample]
"""A sample, and the name of its file."""


def fit(
    measured: Sequence[Samples],
    *,
    link_bps: float | None = None,
    collective: Measured = "all_reduce",
    algorithm: str = "ring",
    gpus_per_node: int | None = None,
) -> Network:
    """Fit a network to the samples of one collective.

    Samples of one node make the tier inside it, samples of several the one between.

    Args:
        measured: Files of samples.
        link_bps: Line rate that a node's ports have together [bit/s]; by default the best
            bus bandwidth, latency taken off, stands in for it.
        collective: Which samples to take.
        algorithm: Assumed of the all-reduce.
        gpus_per_node: Ranks a node, where host names do not say it.

    Raises:
        NetworkError: Nothing to fit, files that contradict each other, or a rate below
            what was measured.
    """
    located = [
        (samples.source, _placed(sample, gpus_per_node))
        for samples in measured
        for sample in samples.samples
    ]
    wanted = [pair for pair in located if pair[1].kind == collective and pair[1].ranks > 1]
    if not wanted:
        have = sorted({sample.kind for _, sample in located if sample.ranks > 1})
        raise NetworkError(
            f"no samples of {collective} on two or more ranks, there are "
            f"{', '.join(have) or 'none of any collective'}",
            "choose one that was measured with --collective",
        )
    _check_agreement(wanted)
    additions = [sample for _, sample in located if sample.kind == "reduction"]
    samples = [sample for _, sample in wanted]
    network = _network(samples, _reduction(additions), algorithm, link_bps)
    errors = np.array([_error(network, sample, algorithm) for sample in samples])
    sources = ", ".join(dict.fromkeys(PurePath(name).name for name, _ in wanted))
    record = Fit(
        collective=collective,
        algorithm=algorithm,
        ranks=tuple(sorted({sample.ranks for sample in samples})),
        smallest_bytes=min(sample.nbytes for sample in samples),
        largest_bytes=max(sample.nbytes for sample in samples),
        median_residual=float(np.median(errors)),
        worst_residual=float(errors.max()),
        sources=sources,
    )
    return msgspec.structs.replace(
        network, source=f"fitted to {sources}", fit=record, contention=_contention(samples)
    )


def _placed(sample: Sample, gpus_per_node: int | None) -> Sample:
    """The sample with its ranks on nodes of a given size, if one is given.

    A collective counts as a training sees it, after computation, where that was measured.
    """
    if sample.after_s is not None:
        sample = msgspec.structs.replace(sample, seconds=sample.after_s)
    if gpus_per_node is None or sample.kind in LOCAL:
        return sample
    return msgspec.structs.replace(sample, nodes=-(-sample.ranks // gpus_per_node))


def _error(network: Network, sample: Sample, algorithm: str) -> float:
    return abs(predict(network, sample, algorithm) / sample.seconds - 1)


def _check_agreement(wanted: Iterable[Located]) -> None:
    """Refuse to average runs of different networks."""

    def same(pair: Located) -> tuple[str, int, int, int]:
        sample = pair[1]
        return (sample.algorithm or "", sample.ranks, sample.nodes, sample.nbytes)

    for _, group in groupby(sorted(wanted, key=same), key=same):
        ordered = sorted(group, key=lambda pair: pair[1].seconds)
        (fast, best), (slow, worst) = ordered[0], ordered[-1]
        if worst.seconds > CONTRADICTION * best.seconds:
            raise NetworkError(
                f"{slow} contradicts {fast}: {best.kind} of {best.nbytes} bytes on {best.ranks} "
                f"ranks took {format_time(worst.seconds)} and {format_time(best.seconds)}",
                "fit each alone: they are not of the same network, or one was disturbed",
            )


def _contention(samples: Sequence[Sample]) -> Contention | None:
    """What samples that were also taken beside computation say, sizes measured twice averaged."""
    points = [
        (sample.nbytes, max(0.0, sample.beside_s - sample.seconds), sample.compute_share)
        for sample in samples
        if sample.beside_s is not None and sample.compute_share
    ]
    if not points:
        return None
    nbytes, delays, shares = np.array(points, dtype=np.float64).T
    sizes, where = np.unique(nbytes, return_inverse=True)
    count = np.bincount(where)
    means = (np.bincount(where, values) / count for values in (delays, shares))
    return Contention(tuple(zip(sizes.tolist(), *(m.tolist() for m in means), strict=True)))


def _reduction(samples: Sequence[Sample]) -> Reduction:
    """The table of additions, sizes measured several times averaged; free without samples."""
    if not samples:
        return Reduction()
    sizes, where = np.unique([sample.nbytes for sample in samples], return_inverse=True)
    seconds = np.bincount(where, [sample.seconds for sample in samples]) / np.bincount(where)
    return Reduction(table=_pairs(sizes, seconds))


def _pairs(sizes: NDArray[np.generic], values: Array) -> Points:
    return tuple((float(size), float(value)) for size, value in zip(sizes, values, strict=True))


def _network(
    samples: Sequence[Sample], reduction: Reduction, algorithm: str, link_bps: float | None
) -> Network:
    """Fit the tiers that there are samples of, and say what stands in for the other."""
    assumed = [] if reduction.table else ["additions are part of the transfer, as measured"]
    if any(
        adds_s(reduction, leg) >= sample.seconds
        for sample in samples
        for leg in legs(sample, algorithm)
    ):
        reduction = Reduction()
        assumed = ["additions hide behind transfers: measured alone, they take longer"]
    inside = [sample for sample in samples if sample.nodes == 1]
    between = [sample for sample in samples if sample.nodes > 1]
    intra = None
    if inside:
        points = _columns(inside, algorithm, reduction, None)
        intra = _tier("inside a node", points, None if between else link_bps)
    elif any(sample.ranks > sample.nodes for sample in between):
        intra = Tier("inside a node", FREE_BPS, 0.0)
        assumed.append("the way inside a node is part of the one between nodes, as measured")
    if between:
        inter = _tier("between nodes", _columns(between, algorithm, reduction, intra), link_bps)
    else:
        assert intra is not None  # noqa: S101 - some samples are inside, or there are none
        inter = msgspec.structs.replace(intra, name="between nodes")
        assumed.append("the way between nodes is as the one inside, for want of a measurement")
    if link_bps is None:
        rate = format_rate(inter.bandwidth_bps)
        assumed.append(f"line rate: {rate}, the best bus bandwidth measured, latency taken off")
    return Network(
        name="fitted",
        inter=inter,
        intra=intra,
        gpus_per_node=max(per_node(sample) for sample in samples),
        reduction=reduction,
        assumptions=tuple(assumed),
    )


class _Columns(msgspec.Struct, frozen=True):
    """What samples say about one tier.

    Attributes:
        nbytes: Size of the collective [bytes].
        through: Bytes that cross the busiest port of the tier [bytes].
        messages: In a row, of the tier.
        seconds: Left when what other tiers and additions take is taken off [s].
    """

    nbytes: Array
    through: Array
    messages: Array
    seconds: Array


def _columns(
    samples: Sequence[Sample], algorithm: str, reduction: Reduction, intra: Tier | None
) -> _Columns:
    """Take the samples apart: between nodes unless all are inside one.

    Args:
        samples: All inside one node, or none.
        algorithm: Of the all-reduce.
        reduction: What adding costs.
        intra: The tier inside a node, where the one between is asked for.
    """
    rows = []
    for sample in samples:
        is_inside = sample.nodes == 1
        leg = next(
            leg
            for leg in legs(sample, algorithm)
            if (leg.intra_bytes if is_inside else leg.inter_bytes)
        )
        if is_inside:
            through, messages, other_s = leg.intra_bytes, leg.intra_messages, 0.0
        else:
            through, messages = leg.inter_bytes, leg.inter_messages
            other_s = tier_s(intra, leg.intra_bytes, leg.intra_messages, sample)
        left_s = sample.seconds - other_s - adds_s(reduction, leg)
        rows.append((sample.nbytes, number(through), number(messages), left_s))
    columns = _Columns(*np.array(rows, dtype=np.float64).T)
    if np.any(columns.seconds <= 0):
        raise NetworkError(
            "the way inside a node, as fitted, takes longer than a whole collective between nodes",
            "fit the samples between nodes alone",
        )
    return columns


def _tier(name: str, columns: _Columns, link_bps: float | None) -> Tier:
    """Fit one tier: the rate, then the largest alpha that it leaves, then the curve."""
    rate_Bps = _rate_Bps(columns) if link_bps is None else bytes_per_second(link_bps)
    slack_s = columns.seconds - columns.through / rate_Bps
    largest = np.argmax(columns.nbytes)
    if slack_s[largest] < -EXCESS * columns.seconds[largest]:
        most_Bps = float(columns.through[largest] / columns.seconds[largest])
        raise NetworkError(
            f"the link has {format_rate(bits_per_second(rate_Bps))}, but "
            f"{format_rate(bits_per_second(most_Bps))} went through it",
            "give the rate of all ports of a node together, or leave it out",
        )
    # Shaped links let short bursts pass faster than their rate; those say nothing of alpha.
    is_possible = slack_s >= 0
    alpha_s = float(np.min(slack_s[is_possible] / columns.messages[is_possible], initial=np.inf))
    alpha_s = alpha_s if np.isfinite(alpha_s) else 0.0
    share = columns.through / columns.nbytes / rate_Bps
    occupied = (columns.seconds - columns.messages * alpha_s) / share
    sizes, grown = _growing(columns.nbytes, occupied, (share / columns.seconds) ** 2)
    efficiency = np.minimum(1.0, sizes / grown)
    return Tier(name, bits_per_second(rate_Bps), alpha_s, _pairs(sizes, efficiency))


def _rate_Bps(columns: _Columns) -> float:
    """The best bus bandwidth, with what the smallest message of a layout takes taken off."""
    rate_Bps = float(np.max(columns.through / columns.seconds))
    for messages in np.unique(columns.messages):
        here = columns.messages == messages
        through, seconds = columns.through[here], columns.seconds[here]
        first = np.argmin(columns.nbytes[here])
        rises = seconds >= RISE * seconds[first]
        if rises.any():
            slopes = (through[rises] - through[first]) / (seconds[rises] - seconds[first])
            rate_Bps = max(rate_Bps, float(slopes.max()))
    return rate_Bps


def _growing(sizes: Array, occupied: Array, weights: Array) -> tuple[Array, Array]:
    """The non-decreasing occupancy nearest to the measured one: pool adjacent violators.

    Samples of one size are one point. Weighted, so that relative errors of times count.
    """
    unique, where = np.unique(sizes, return_inverse=True)
    weight = np.bincount(where, weights)
    mean = np.bincount(where, weights * occupied) / weight
    pools: list[tuple[float, float, int]] = []
    for pool in zip(mean.tolist(), weight.tolist(), [1] * len(unique), strict=True):
        value, heft, count = pool
        while pools and pools[-1][0] >= value:
            before, before_heft, before_count = pools.pop()
            value = (before * before_heft + value * heft) / (before_heft + heft)
            heft, count = heft + before_heft, count + before_count
        pools.append((value, heft, count))
    grown = np.repeat([value for value, _, _ in pools], [count for _, _, count in pools])
    # A hair of slope, lest a pool of equal values fall by rounding.
    return unique, np.maximum(grown, unique) * (1 + 1e-12 * np.arange(len(unique)))
