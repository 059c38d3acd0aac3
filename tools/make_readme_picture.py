"""Draw the picture of the README: one question, its thresholds, and the bill.

Run from the root of the repository: `python tools/make_readme_picture.py`. Every number in
the picture is a field of a verdict on the workload of `wirebound demo`.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from wirebound.api import whatif
from wirebound.cli.demo import BATCH, GPUS_PER_NODE, INTRA, LINK, MODEL, STEP_S, WORKERS
from wirebound.report.terminal import TITLES
from wirebound.units import format_rate, format_ratio, format_time
from wirebound.verdict.record import Verdict
from wirebound.workload.modelled import scaled
from wirebound.workload.zoo import load

PATH = Path("docs/img/thresholds.svg")

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 736, 40, 268
"""Of the curve's frame."""
BAR_TOP, BAR_BOTTOM = 330, 354

FIRST_BPS, LAST_BPS, POINTS = 1e9, 400e9, 121
TICKS_BPS = (1e9, 2.5e9, 10e9, 25e9, 100e9, 400e9)

COLOURS = {"compute": "#2f9e6e", "link_inter": "#d9622b"}
OTHER = "#8a63d2"

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #6e7781; }
.title { font-weight: 600; }
.frame { stroke: #6e7781; stroke-opacity: .45; fill: none; }
.grid { stroke: #6e7781; stroke-opacity: .18; }
.curve { stroke: #3b82d6; stroke-width: 2.5; fill: none; }
.goal { stroke: #3b82d6; stroke-dasharray: 5 4; }
.dot { fill: #d9622b; }
@media (prefers-color-scheme: dark) { text { fill: #9198a1; } }
"""


def picture() -> str:
    """The picture as SVG."""
    verdict = ask()[0]
    rates = [FIRST_BPS * (LAST_BPS / FIRST_BPS) ** (k / (POINTS - 1)) for k in range(POINTS)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{_headline(verdict)}</title>",
        f"<style>{STYLE}</style>",
        *_frame(verdict),
        *_curve(ask(rates)),
        *_thresholds(verdict),
        *_bill(verdict),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def ask(rates_bps: Sequence[float] = ()) -> list[Verdict]:
    """Verdicts on the demo's workload, at its own link rate or at others."""
    links = [f"{rate!r}bps" for rate in rates_bps] or LINK
    return whatif(
        scaled(load(MODEL), STEP_S, BATCH),
        intra=INTRA,
        workers=WORKERS,
        gpus_per_node=GPUS_PER_NODE,
        link=links,
        algorithm="hierarchical",
    )


def _x(rate_bps: float) -> float:
    share = math.log(rate_bps / FIRST_BPS) / math.log(LAST_BPS / FIRST_BPS)
    return LEFT + share * (RIGHT - LEFT)


def _y(scaling_factor: float) -> float:
    return BOTTOM - scaling_factor * (BOTTOM - TOP)


def _headline(verdict: Verdict) -> str:
    return (
        f"{verdict.workload} on {verdict.scenario['workers']} workers: "
        "scaling factor over the rate of a node's link"
    )


def _frame(verdict: Verdict) -> list[str]:
    lines = [_label(LEFT, TOP - 16, _headline(verdict), css="title")]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = _y(share)
        lines.append(_line(LEFT, y, RIGHT, y, "grid"))
        lines.append(_label(LEFT - 8, y + 4, f"{share:.0%}", "end"))
    for rate in TICKS_BPS:
        x = _x(rate)
        lines.append(_line(x, TOP, x, BOTTOM, "grid"))
        place = "end" if rate == LAST_BPS else "middle"
        unit = " Gbit/s" if rate == LAST_BPS else ""
        lines.append(_label(x, BOTTOM + 18, f"{rate / 1e9:g}{unit}", place))
    size = f'width="{RIGHT - LEFT}" height="{BOTTOM - TOP}"'
    return [*lines, f'<rect x="{LEFT}" y="{TOP}" {size} class="frame"/>']


def _curve(verdicts: Sequence[Verdict]) -> list[str]:
    points = " ".join(
        f"{_x(float(str(v.scenario['link_bps']))):.1f},{_y(v.scaling_factor):.1f}" for v in verdicts
    )
    return [f'<polyline points="{points}" class="curve"/>']


def _thresholds(verdict: Verdict) -> list[str]:
    needed, enough = (verdict.thresholds[name] for name in ("link_for_target", "link_enough"))
    rate = float(str(verdict.scenario["link_bps"]))
    goal = verdict.target
    if goal is None or needed.value is None or enough.value is None:
        raise ValueError("the demo has no threshold to draw")
    x, y, here = _x(needed.value), _y(goal), _y(verdict.scaling_factor)
    return [
        _line(LEFT, y, x, y, "goal"),
        _line(x, y, x, BOTTOM, "goal"),
        _label(x + 8, BOTTOM - 44, f"{format_rate(needed.value)}"),
        _label(x + 8, BOTTOM - 28, f"reaches {format_ratio(goal)}"),
        _line(_x(enough.value), TOP, _x(enough.value), BOTTOM, "goal"),
        _label(_x(enough.value) + 8, BOTTOM - 44, f"{format_rate(enough.value)}"),
        _label(_x(enough.value) + 8, BOTTOM - 28, "stops mattering"),
        f'<circle cx="{_x(rate):.1f}" cy="{here:.1f}" r="5" class="dot"/>',
        _label(
            _x(rate) - 10,
            here - 8,
            f"{format_ratio(verdict.scaling_factor)} at {format_rate(rate)}",
            "end",
        ),
    ]


def _bill(verdict: Verdict) -> list[str]:
    """One bar of the critical path; lines too thin to name are drawn together."""
    rate = format_rate(float(str(verdict.scenario["link_bps"])))
    title = f"The bill of a step at {rate}: {format_time(verdict.step_s)}"
    lines = [_label(LEFT, BAR_TOP - 10, title, css="title")]
    named = [name for name in verdict.bill if name in COLOURS]
    parts = [
        (TITLES[name], verdict.bill[name], COLOURS[name])
        for name in sorted(named, key=lambda name: -verdict.bill[name])
    ]
    others = sum(seconds for name, seconds in verdict.bill.items() if name not in COLOURS)
    parts.append(("the rest", others, OTHER))
    x = float(LEFT)
    for column, (name, seconds, colour) in enumerate(parts):
        width = seconds / verdict.step_s * (RIGHT - LEFT)
        lines.append(_box(x, BAR_TOP, width, BAR_BOTTOM - BAR_TOP, colour))
        legend = LEFT + column * (RIGHT - LEFT) / len(parts)
        lines.append(_box(legend, BAR_BOTTOM + 13, 12, 12, colour))
        lines.append(_label(legend + 18, BAR_BOTTOM + 24, f"{name} {format_time(seconds)}"))
        x += width
    return lines


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{colour}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"/>'


def _label(x: float, y: float, text: str, anchor: str = "start", css: str = "") -> str:
    style = f' class="{css}"' if css else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{text}</text>'


if __name__ == "__main__":
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(picture(), encoding="utf-8")
    print(f"Wrote {PATH}")
