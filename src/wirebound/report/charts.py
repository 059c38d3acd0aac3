"""Figures as Vega-Lite specifications, and those as pictures."""

from typing import Any

from wirebound.errors import StudyError
from wirebound.report.figures import NO_LIMIT, place_words
from wirebound.study.figures import Figure, Point
from wirebound.units import GIGA

Spec = dict[str, Any]

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"]
"""Of Okabe and Ito, which people with any kind of sight can tell apart."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH, HEIGHT, COLUMNS = 300, 190, 2
BEYOND = 2.5
"""Where a link without a limit stands, as a multiple of the fastest with one."""


def chart(figure: Figure) -> Spec:
    """A figure as a Vega-Lite specification: a panel a script, a line a series.

    Bars reach from the smallest to the largest of the repeats.
    """
    rows = [
        {
            "panel": series.panel,
            "series": series.name,
            "x": _place(figure, point),
            "y": point.y * _scale(figure),
            "low": point.low * _scale(figure),
            "high": point.high * _scale(figure),
        }
        for series in figure.series
        for point in series.points
    ]
    names = list(dict.fromkeys(series.name for series in figure.series))
    colour = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": names, "range": [COLOURS[i % len(COLOURS)] for i in range(len(names))]},
        "legend": {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 300},
    }
    dashes = [[4, 3] if name.startswith("predicted") else [1, 0] for name in names]
    y = {"field": "y", "type": "quantitative", "title": _unit(figure), "scale": {"zero": True}}
    return {
        "$schema": SCHEMA,
        "title": f"Figure {figure.number}. {figure.title}",
        "data": {"values": rows},
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": None},
        "columns": COLUMNS,
        "spec": {
            "width": WIDTH,
            "height": HEIGHT,
            "encoding": {"x": _axis(figure), "color": colour},
            "layer": [
                {"mark": {"type": "rule", "opacity": 0.5},
                 "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}}},
                {"mark": {"type": "line", "strokeWidth": 1.8},
                 "encoding": {"y": y, "strokeDash": {**colour, "scale": {"domain": names,
                                                                         "range": dashes}}}},
                {"mark": {"type": "point", "filled": True, "size": 32}, "encoding": {"y": y}},
            ],
        },
        "config": {"font": "sans-serif", "view": {"stroke": "#ccc"},
                   "axis": {"grid": True, "gridColor": "#eee"}},
    }  # fmt: skip


def svg(spec: Spec) -> str:
    """A specification as a picture, drawn without a browser and without a network.

    Raises:
        StudyError: The package that draws is missing.
    """
    try:
        import vl_convert
    except ImportError:
        raise StudyError(
            "pictures need vl-convert-python, which is not installed",
            "pip install 'wirebound[plot]', or leave --svg out for tables",
        ) from None
    return str(vl_convert.vegalite_to_svg(spec))


def _place(figure: Figure, point: Point) -> float:
    if figure.x == "workers":
        return float(point.x or 0.0)
    return _unlimited(figure) if point.x is None else point.x / GIGA


def _unlimited(figure: Figure) -> float:
    """Where a link without a limit stands [Gbit/s]."""
    limited = [p.x for series in figure.series for p in series.points if p.x is not None]
    return BEYOND * max(limited, default=GIGA) / GIGA


def _axis(figure: Figure) -> Spec:
    places = {point.x for series in figure.series for point in series.points}
    if figure.x == "workers":
        return {"field": "x", "type": "ordinal", "title": "workers",
                "axis": {"labelAngle": 0}}  # fmt: skip
    end = _unlimited(figure)
    labels = {
        f"{end if place is None else place / GIGA:g}": place_words(figure, place)
        for place in places
    }
    words = " : ".join(f"datum.value == {at} ? '{word}'" for at, word in labels.items())
    return {
        "field": "x",
        "type": "quantitative",
        "title": f"link [bit/s], {NO_LIMIT}: no limit",
        "scale": {"type": "log", "nice": False},
        "axis": {"values": [float(at) for at in labels], "labelExpr": f"{words} : ''"},
    }


def _scale(figure: Figure) -> float:
    return 1e3 if figure.y == "seconds" else 100.0


def _unit(figure: Figure) -> str:
    return "time [ms]" if figure.y == "seconds" else "[%]"
