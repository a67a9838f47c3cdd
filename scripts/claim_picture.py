"""The picture of all claims of a registry that have an answer, for scripts/claims page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from claim_answers import Judged, answer_to, task_name
from claim_registry import Registry, StoredClaim
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import Picture, name_rows, write_beside
from esper_ab.report.figures.effects import interval_rows
from esper_ab.report.figures.external import write_figure

_ROW = 0.3  # inches
_LEGEND_COLUMNS = 4


def write_picture(registry: Registry, path: Path) -> None:
    """Write the picture of a registry to an SVG file."""
    write_figure(figure_of(registry), path)


def figure_of(registry: Registry) -> Figure:
    """Draw a row per claim, from the largest difference to the smallest: its interval, its mean, and its tasks."""
    rows = answered(registry)
    with style.look():
        figure = Picture(figsize=(9.4, 1.5 + _ROW * len(rows)))
        axes = figure.subplots()
        effects = [(judged.own["estimate"], (judged.own["low"], judged.own["high"])) for _, _, judged in rows]
        interval_rows(axes, effects, 1.0, [in_margins(on_task) for _, _, judged in rows for on_task in judged.on_tasks])
        tasks = list(dict.fromkeys(task_name(on_task) for _, _, judged in rows for on_task in judged.on_tasks))
        for row, (_, _, judged) in enumerate(rows):
            for on_task in judged.on_tasks:
                axes.plot([in_margins(on_task)], [row], zorder=3, **_mark(tasks.index(task_name(on_task))))
        name_rows(axes, [row_name(claim) for claim, _, _ in rows], top=-0.7, bottom=0.3)
        write_beside(axes, [answer for _, answer, _ in rows])
        axes.set_xlabel("difference in margins; line: interval of the mean over the tasks; shaded: within a margin")
        handles = [Line2D([], [], label=task, **_mark(index)) for index, task in enumerate(tasks)]
        if handles:
            figure.legend(handles=handles, loc="outside upper left", ncols=_LEGEND_COLUMNS, borderaxespad=0.2)
        style.arrange(figure)
        figure.draw_without_rendering()
        return figure


def answered(registry: Registry) -> list[tuple[StoredClaim, str, Judged]]:
    """Return the claims that have an answer with an interval, in the order of the picture."""
    rows = []
    for claim in registry.claims:
        judged = Judged.stored(claim)
        result = claim.stored("result.json")
        if judged is not None and result is not None and judged.own["low"] is not None:
            rows.append((claim, answer_to(claim, result["conditions"], judged), judged))
    return sorted(rows, key=lambda row: -row[2].own["estimate"])


def row_name(claim: StoredClaim) -> str:
    """Name a claim by its folder and its groups, the better one of its sentence first."""
    first_group, _, second_group = claim.condition
    return f"{claim.name}: {first_group} \u2212 {second_group}"


def in_margins(on_task: dict[str, Any]) -> float:
    """Return a difference on one task in units of its margin."""
    return float(on_task["estimate"] / on_task["margin"])


def _mark(index: int) -> dict[str, Any]:
    return {
        "color": style.colour(index),
        "marker": style.marker(index),
        "markersize": 5,
        "linestyle": "none",
        "markerfacecolor": style.CARD,
    }
