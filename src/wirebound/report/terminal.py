"""A verdict in the terminal: the answer first, then what it is made of."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from wirebound.report.console import add_row, bar, cell, line, plain_table, put
from wirebound.simulate.keys import KEYS
from wirebound.units import BITS_PER_BYTE, format_rate, format_ratio, format_size, format_time
from wirebound.verdict.record import ErrorBar, Verdict, Word

TITLES = {
    "compute": "compute",
    "input": "input",
    "host": "host",
    "link_inter": "link between nodes",
    "link_intra": "link inside nodes",
    "latency_inter": "latency between nodes",
    "latency_intra": "latency inside nodes",
    "reduction": "additions",
    "codec": "codec",
    "contention": "contention",
    "wait": "waiting for ranks",
}

KEY_OF_FIELD = {key.field.rpartition(".")[2]: name for name, key in KEYS.items()} | {
    "bucketing": "bucketing"
}
"""A scenario's fields under the names that flags and files have for them."""

WRITERS: dict[str, Callable[[float], str]] = {
    "_bps": format_rate,
    "_bytes": format_size,
    "_s": format_time,
    "efficiency": format_ratio,
    "inflation": format_ratio,
}
"""How numbers are written, by the end of their field's name."""

WIDEST_BAR = 60
LONGEST_NAME = 60

SAYS = {
    Word.COMPUTE: "the network is not the limit",
    Word.LINK: "the link is full, a faster one helps",
    Word.TRANSPORT: "the link is far from full, its use is the problem",
    Word.LATENCY: "many small or dependent messages",
    Word.OVERLAP: "enough capacity, wrong order",
    Word.VOLUME: "traffic that need not be",
    Word.INTRA_NODE: "the way inside the node",
    Word.SKEW: "waiting for a late rank",
    Word.INPUT: "data pipeline or host",
    Word.UNDETERMINED: "the numbers do not decide it",
}


def show_all(con: Console, verdicts: Sequence[Verdict]) -> None:
    """Print one verdict in full, several as a table."""
    if len(verdicts) == 1:
        show(con, verdicts[0])
    else:
        show_grid(con, verdicts)


def show(con: Console, verdict: Verdict) -> None:
    """Print one verdict: headline, bill, causes, thresholds, what it rests on."""
    _headline(con, verdict)
    con.print()
    _bill(con, verdict)
    con.print()
    _causes(con, verdict)
    if verdict.thresholds:
        con.print()
        line(con, "What would change it", "bold")
        for sentence in threshold_sentences(verdict):
            line(con, sentence, indent=2)
    _small_print(con, [verdict])


def show_grid(con: Console, verdicts: Sequence[Verdict]) -> None:
    """Print many verdicts as a table: what varies, and what follows."""
    first = verdicts[0]
    shared = [key for key in first.scenario if all(key in v.scenario for v in verdicts)]
    varying = [
        key for key in shared if any(v.scenario[key] != first.scenario[key] for v in verdicts)
    ]
    title = f"{_name(first.workload)}: {len(verdicts)} scenarios, network {_name(first.network)}"
    line(con, title, "bold")
    headers = [
        *(KEY_OF_FIELD.get(key, key) for key in varying),
        "step",
        "scaling",
        "network\nshare",
        *([] if first.target is None else [f"link for\n{format_ratio(first.target)}"]),
    ]
    words = {index for index, key in enumerate(varying) if isinstance(first.scenario[key], str)}
    right = [index for index in range(len(headers)) if index not in words]
    table = plain_table([*headers, "limit"], right=right)
    for verdict in verdicts:
        add_row(
            table,
            *(_value(key, verdict.scenario[key]) for key in varying),
            format_time(verdict.step_s),
            format_ratio(verdict.scaling_factor),
            format_ratio(verdict.network_share),
            *([] if verdict.target is None else [_link_for_target(verdict)]),
            verdict.word.value,
        )
    put(con, table)
    if first.error_bar is not None:
        con.print()
        line(con, f"How far off steps may be: {_within(first.error_bar)}.")
    _small_print(con, verdicts)


def _link_for_target(verdict: Verdict) -> str:
    threshold = verdict.thresholds.get("link_for_target")
    if threshold is None:
        return ""
    return "none" if threshold.value is None else format_rate(threshold.value)


def threshold_sentences(verdict: Verdict) -> list[str]:
    """The thresholds in words, one sentence each."""
    if verdict.target is None:
        return []
    is_met = verdict.scaling_factor >= verdict.target
    goal = format_ratio(verdict.target)
    measured = format_ratio(verdict.measured_scaling_factor or 0.0)
    sentences = []
    for name, (to_reach, to_keep, never) in _THRESHOLDS.items():
        threshold = verdict.thresholds.get(name)
        sentence = to_keep if is_met else to_reach
        if threshold is None or not sentence:
            continue
        if threshold.value is None:
            sentences.append(never.format(goal=goal, measured=measured))
            continue
        value = _value(threshold.field, threshold.value)
        about = "" if threshold.is_exact else " (found by bisection)"
        sentences.append(sentence.format(goal=goal, value=value, about=about, measured=measured))
    return sentences


_THRESHOLDS = {
    "effective_link": (
        "The measured scaling factor of {measured} is what {value}{about} gives, used perfectly.",
        "The measured scaling factor of {measured} is what {value}{about} gives, used perfectly.",
        "The measured scaling factor of {measured} beats any link: another algorithm ran.",
    ),
    "link_enough": (
        "The link stops mattering at {value}{about}: beyond, even an infinite one gains under 1 %.",
        "The link stops mattering at {value}{about}: beyond, even an infinite one gains under 1 %.",
        "No link is fast enough to stop mattering.",
    ),
    "link_for_target": (
        "A scaling factor of {goal} needs a link of {value}{about}, all else equal.",
        "A scaling factor of {goal} holds down to a link of {value}{about}, all else equal.",
        "No link gives a scaling factor of {goal}.",
    ),
    "compression_for_target": (
        "Compressing gradients {value}x{about} gives {goal} too, if it costs nothing.",
        "",
        "No compression ratio gives {goal}.",
    ),
    "batch_for_target": (
        "{value}x{about} the samples a worker and step give {goal} too.",
        "It holds down to {value}x{about} the samples a worker and step.",
        "No batch size gives {goal}.",
    ),
    "efficiency_for_target": (
        "On this link the transport would have to reach {value}{about} of the line rate.",
        "",
        "On this link no transport gives {goal}, not even a perfect one.",
    ),
    "workers_for_target": (
        "Workers that scale at {goal} or better on this network: up to {value}{about}.",
        "Workers that scale at {goal} or better on this network: up to {value}{about}.",
        "Not even one full node scales at {goal}.",
    ),
}
"""By threshold: how to reach the target, how far it holds, and that nothing reaches it."""


def _headline(con: Console, verdict: Verdict) -> None:
    scenario = verdict.scenario
    rate = format_rate(float(str(scenario["link_bps"])))
    title = (
        f"{_name(verdict.workload)}: {_workers(verdict)}, "
        f"{scenario['gpus_per_node']} a node, {rate} a port"
    )
    line(con, title, "bold")
    low, high = (format_time(seconds) for seconds in verdict.step_range_s)
    spread = "" if low == high else f" ({low} to {high} within the workload's uncertainty)"
    line(con, f"{verdict.word.value}: {SAYS[verdict.word]}.", "bold cyan")
    alone = format_time(verdict.alone_s)
    line(con, f"A step takes {format_time(verdict.step_s)}{spread}; alone {alone}.")
    if verdict.error_bar is not None:
        line(con, f"{_between(verdict.error_bar)}, going by {_within(verdict.error_bar)}.")
    line(
        con,
        f"The network costs {format_time(verdict.exposed_comm_s)} of it "
        f"({format_ratio(verdict.network_share)}); scaling factor "
        f"{format_ratio(verdict.scaling_factor)}.",
    )
    if scenario["workers"] != 1:
        line(con, f"Computed for {verdict.bound}.", "dim")


def _between(error: ErrorBar) -> str:
    high = "any time" if error.high_s is None else format_time(error.high_s)
    return f"Between {format_time(error.low_s)} and {high}"


def _within(error: ErrorBar) -> str:
    return (
        f"{_name(error.study)}, where nine of ten of {error.runs} predicted steps were within "
        f"{format_ratio(error.p90)} of the measured one"
    )


def _workers(verdict: Verdict) -> str:
    count = verdict.scenario["workers"]
    return "1 worker" if count == 1 else f"{count} workers"


def _bill(con: Console, verdict: Verdict) -> None:
    line(con, "The bill: what the chain that ends last is made of", "bold")
    room = min(WIDEST_BAR, max(10, con.width - 48))
    table = plain_table([""] * 4, right=(1, 2))
    for name, share in sorted(verdict.bill_shares.items(), key=lambda item: -item[1]):
        add_row(
            table,
            f"  {TITLES[name]}",
            format_time(verdict.bill[name]),
            format_ratio(share),
            Text(bar(con, share, room), style="cyan"),
        )
    put(con, table)


def _causes(con: Console, verdict: Verdict) -> None:
    line(con, "The causes: what removing each would save", "bold")
    table = plain_table([""] * 3, right=(1,))
    for cause in verdict.causes:
        evidence = cell(cause.evidence, "dim")
        add_row(table, f"  {cause.word.value}", format_time(cause.seconds), evidence)
    put(con, table)


def _small_print(con: Console, verdicts: Sequence[Verdict]) -> None:
    """What all of them rest on, each sentence once."""
    warnings = [sentence for verdict in verdicts for sentence in verdict.warnings]
    assumed = [sentence for verdict in verdicts for sentence in verdict.assumptions]
    following = [v.next_measurement for v in verdicts if v.next_measurement is not None]
    parts = (
        ("Warning", warnings, "yellow"),
        ("Assumed", assumed, "dim"),
        ("Next", following, "dim"),
    )
    if any(sentences for _, sentences, _ in parts):
        con.print()
    for title, sentences, style in parts:
        for sentence in dict.fromkeys(sentences):
            line(con, f"{title}: {sentence}", style)


def _name(text: str) -> str:
    """A name short enough for a headline."""
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 3]}..."


def _value(key: str, value: object) -> str:
    """A scenario's field as people write it."""
    if isinstance(value, Mapping):
        return f"{value['distribution']}:{format_ratio(float(value['spread']))}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower()
    if key.endswith("_s_per_byte"):
        return format_rate(BITS_PER_BYTE / value, "GB/s") if value else "free"
    for suffix, write in WRITERS.items():
        if key.endswith(suffix):
            return write(float(value))
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"
