"""The figures of a study in the terminal: a table each."""

from collections.abc import Sequence

from rich.console import Console

from wirebound.report.console import add_row, line, plain_table, put
from wirebound.study.figures import Figure, Series
from wirebound.units import GIGA, MEGA, format_time

NO_LIMIT = "none"


def show_figures(con: Console, figures: Sequence[Figure]) -> None:
    """Print a table for each figure, a row for each series."""
    for index, figure in enumerate(figures):
        if index:
            con.print()
        line(con, f"Figure {figure.number}. {figure.title}", "bold")
        places = list(
            dict.fromkeys(
                sorted(
                    (point.x for one in figure.series for point in one.points),
                    key=lambda place: float("inf") if place is None else place,
                )
            )
        )
        headers = ["", figure.x, *(place_words(figure, place) for place in places)]
        table = plain_table(headers, right=range(2, 2 + len(places)))
        panel = ""
        for one in figure.series:
            shown = one.panel if one.panel != panel else ""
            panel = one.panel
            add_row(table, shown, one.name, *(_value(figure, one, place) for place in places))
        put(con, table)


def place_words(figure: Figure, place: float | None) -> str:
    """A place on the x axis, short: `2`, `500M`, `1G`, `none`."""
    if place is None:
        return NO_LIMIT
    if figure.x == "workers":
        return f"{place:g}"
    return f"{place / GIGA:g}G" if place >= GIGA else f"{place / MEGA:g}M"


def _value(figure: Figure, series: Series, place: float | None) -> str:
    found = next((point for point in series.points if point.x == place), None)
    if found is None:
        return ""
    return format_time(found.y) if figure.y == "seconds" else f"{100 * found.y:.1f}"
