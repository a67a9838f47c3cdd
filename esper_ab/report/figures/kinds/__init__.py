"""A catalogue of the additional figures of each kind of task, one `KIND` per file, named after the kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from esper_ab.contracts import catalog
from esper_ab.report.content import Content
from esper_ab.report.figures.drawing import Drawing

Draw = Callable[[Content], Drawing | None]
FiguresOfKind = Mapping[str, Mapping[str, Draw]]  # section of the page -> name -> figure


def figures_of(content: Content) -> FiguresOfKind:
    """Return the figures for the kind of the plan's task."""
    return catalog.entry_or(__name__, content.history.plan.kind, "KIND", {})
