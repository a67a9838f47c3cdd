"""The figures of a report by name, for the page or alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matplotlib.figure import Figure

from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.report.content import Content
from esper_ab.report.figures import curves as figures_curves
from esper_ab.report.figures import effects as figures_effects
from esper_ab.report.figures import outcome as figures_outcome
from esper_ab.report.figures import profiles as figures_profiles
from esper_ab.report.figures import reward_audit as figures_reward_audit
from esper_ab.report.figures import runs, style
from esper_ab.report.figures.drawing import Drawing
from esper_ab.report.figures.kind import BySection, Draw, FiguresKind

_BY_SECTION: BySection = {
    "answer": {"effects": figures_effects.effects, "curves": figures_curves.outcome},
    "decides": {"outcomes": figures_outcome.outcomes, "pairs": figures_outcome.pairs},
    "beside": {"profiles": figures_profiles.profiles},
    "training": {"entropy": figures_curves.entropy, "heads": figures_curves.heads},
    "rewards": figures_reward_audit.OF_EXPERIMENTS,
    "groups": {},
}


def _figures_of(section: str, content: Content) -> Mapping[str, Draw]:
    kind_figures = of_kind(content.history.plan.kind, FiguresKind).by_section
    return {**_BY_SECTION.get(section, {}), **kind_figures.get(section, {})}


def names(content: Content) -> tuple[str, ...]:
    """Return the names of all figures that exist for the experiment's kind of task."""
    return tuple(name for section in _BY_SECTION for name in _figures_of(section, content))


def drawn(section: str, content: Content) -> list[Drawing]:
    """Draw the figures of a section of the page, without those that have no data."""
    with style.look():
        possible_drawings = [draw(content) for draw in _figures_of(section, content).values()]
    drawings = [figure_drawing for figure_drawing in possible_drawings if figure_drawing is not None]
    if not drawings:
        return []
    tips = runs.tips(content)
    return [replace(figure_drawing, tips=tips) for figure_drawing in drawings]


def figure(name: str, content: Content) -> Figure | None:
    """Draw the figure called `name`, one of `names`, on white; None if there is no data yet. No display is needed."""
    draws: dict[str, Draw] = {}
    for section in _BY_SECTION:
        draws |= _figures_of(section, content)
    with style.look():
        figure_drawing = draws[name](content)
        if figure_drawing is None:
            return None
        style.arrange(figure_drawing.figure)
        figure_drawing.figure.draw_without_rendering()  # matplotlib creates ticks on drawing, in the style of then
    return figure_drawing.figure
