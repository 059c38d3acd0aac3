"""The sentences of a verdict: what each number rests on, and what would refute it."""

from collections.abc import Callable

import msgspec

from wirebound.simulate.program import Program
from wirebound.simulate.scenario import Scenario
from wirebound.units import format_rate, format_ratio, format_size, format_time
from wirebound.verdict.record import Word
from wirebound.workload.record import COLLECTIVES, Kind

BOUNDS = {
    "ring": "a flat ring over all ranks: each node's port carries 2(N-1)/N of the gradients",
    "hierarchical": "a hierarchical all-reduce: reduce inside the node first, then each port "
    "carries 2(n-1)/n of the gradients for n nodes",
    "halving-doubling": "recursive halving and doubling: few messages, same bytes as hierarchical",
    "tree": "a double binary tree: at most twice the gradients a port, once for two nodes",
    "parameter-server": "parameter servers: the busiest of workers' and servers' ports decides",
    "in-network": "reduction in the switch: each port carries the gradients once",
}


def bound(scenario: Scenario) -> str:
    """Which algorithm's step time this is, and what it bounds."""
    best = "; no transport can make this algorithm faster" if scenario.efficiency == 1 else ""
    return f"{BOUNDS[scenario.algorithm]}{best}"


class Scene(msgspec.Struct, frozen=True):
    """What a sentence may speak of.

    Attributes:
        program: What was simulated.
        scenario: One scenario of it.
        link_s: Seconds a step for which a node's ports would be busy at line rate.
        latency_s: Seconds a step of messages between nodes, one after the other.
    """

    program: Program
    scenario: Scenario
    link_s: float
    latency_s: float


def evidence(word: Word, scene: Scene) -> str:
    """One sentence with the numbers behind a cause."""
    return _EVIDENCE[word](scene)


def assumptions(program: Program, scenario: Scenario) -> tuple[str, ...]:
    """What was assumed because nobody said it."""
    found = list(program.network.assumptions)
    if scenario.gpus_per_node > 1 and program.network.intra is None:
        found.append("the way between the GPUs of a node costs nothing")
    if scenario.schedule.overlap_next_forward and any(
        gradient.needed_s is None for gradient in program.workload.gradients
    ):
        found.append("the forward pass needs parameters in the reverse order of their gradients")
    source = program.workload.source
    if source.kind in ("modelled", "scaled"):
        found.append(f"compute times are {source.kind}: {source.detail}")
    return tuple(found)


def warnings(program: Program, scenario: Scenario, *, is_settled: bool) -> tuple[str, ...]:
    """What makes the numbers less certain than they look."""
    found = []
    if not is_settled:
        found.append(
            "steps never settle into a period here; the step time is an average of several"
        )
    costs_nothing = scenario.encode_s_per_byte == 0 and scenario.decode_s_per_byte == 0
    if scenario.compression_ratio > 1 and costs_nothing:
        found.append(
            "compression is priced at zero: give encode and decode throughput, which often decide"
        )
    if scenario.compute_speed != 1 and program.workload.source.kind == "log":
        found.append("the log holds the backward pass alone; the rest of the step is not scaled")
    if (
        scenario.workers > 1
        and not program.workload.gradients
        and not any(op.nbytes for op in program.workload.operations)
    ):
        found.append("the workload moves no bytes, so nothing can be said about the network")
    return (*found, *_beyond_the_fit(program, scenario))


def _beyond_the_fit(program: Program, scenario: Scenario) -> list[str]:
    """What a fitted network is asked beside what it was fitted to."""
    fit = program.network.fit
    sizes = [
        op.nbytes / (scenario.compression_ratio if op.is_gradient else 1)
        for op in program.graph.operations
        if op.kind in COLLECTIVES and op.nbytes
    ]
    if fit is None or scenario.workers == 1 or not sizes:
        return []
    found = []
    if min(sizes) < fit.smallest_bytes or max(sizes) > fit.largest_bytes:
        found.append(
            f"collectives have {format_size(min(sizes))} to {format_size(max(sizes))}, the network "
            f"was fitted to {format_size(fit.smallest_bytes)} to {format_size(fit.largest_bytes)}: "
            "beyond, the efficiency of the nearest size is taken"
        )
    if scenario.algorithm != fit.algorithm:
        found.append(
            f"the network was fitted assuming {fit.algorithm}, the scenario says "
            f"{scenario.algorithm}"
        )
    return found


def next_measurement(program: Program) -> str | None:
    """What to measure to know better."""
    kind = program.workload.source.kind
    if kind == "modelled":
        return "the time of one step on one worker; pass it as --step"
    if program.network.assumptions:
        return (
            "an all-reduce between two nodes at the bucket sizes (nccl-tests); "
            "put its bus bandwidth into a network file"
        )
    return None


def _skew(scene: Scene) -> str:
    jitter = scene.scenario.jitter
    spread = 0.0 if jitter is None else jitter.spread
    return f"compute varies by {format_ratio(spread)}; collectives wait for the slowest rank"


def _volume(scene: Scene) -> str:
    count = scene.scenario.schedule.accumulation
    return f"gradients are reduced after each of {count} micro-steps; once would do"


def _transport(scene: Scene) -> str:
    share = scene.scenario.efficiency
    if share is None:
        share = scene.program.network.inter.best_efficiency
    return f"the transport reaches {format_ratio(share)} of the line rate"


def _latency(scene: Scene) -> str:
    collectives = sum(op.kind in COLLECTIVES for op in scene.program.graph.operations)
    alpha_s = scene.scenario.latency_s
    if alpha_s is None:
        alpha_s = scene.program.network.inter.alpha_s
    messages = scene.latency_s / alpha_s
    return (
        f"{collectives} collectives a step wait for {messages:,.0f} messages in a row, "
        f"{format_time(alpha_s)} each"
    )


def _intra_node(scene: Scene) -> str:
    tier = scene.program.network.intra
    rate = "no described link" if tier is None else f"{tier.name} at {format_rate(tier.node_bps)}"
    return f"between the GPUs of a node: {rate}"


def _link(scene: Scene) -> str:
    workload, inter = scene.program.workload, scene.program.network.inter
    rate = inter.bandwidth_bps if scene.scenario.link_bps is None else scene.scenario.link_bps
    what = f"{format_size(workload.gradient_bytes)} of gradients" if workload.gradients else "bytes"
    return (
        f"{what} keep a node's port of {format_rate(rate)} busy for "
        f"{format_time(scene.link_s)} a step at line rate"
    )


def _overlap(scene: Scene) -> str:
    scenario = scene.scenario
    backward_s = scene.program.workload.span_s(Kind.BACKWARD)
    backward_s *= scenario.batch_scale / scenario.compute_speed
    return (
        f"{format_time(scene.link_s)} on the link beside {format_time(backward_s)} of backward "
        "pass: this much would fit under it, but becomes ready too late"
    )


def _input(_scene: Scene) -> str:
    return "waiting for data and gaps of the host, as measured"


def _compute(scene: Scene) -> str:
    return f"what {scene.program.workload.name} computes anyway, additions and codec included"


_EVIDENCE: dict[Word, Callable[[Scene], str]] = {
    Word.SKEW: _skew,
    Word.VOLUME: _volume,
    Word.TRANSPORT: _transport,
    Word.LATENCY: _latency,
    Word.INTRA_NODE: _intra_node,
    Word.LINK: _link,
    Word.OVERLAP: _overlap,
    Word.INPUT: _input,
    Word.COMPUTE: _compute,
}
