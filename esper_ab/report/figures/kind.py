"""Additional figures of a report for one kind of task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from esper_ab.contracts.kinds_of_task import Concern
from esper_ab.report.content import Content
from esper_ab.report.figures.drawing import Drawing

Draw = Callable[[Content], Drawing | None]
BySection = Mapping[str, Mapping[str, Draw]]  # section of the page -> name -> figure


class FiguresKind(Concern):
    """Base of the figures of a kind of task; by default there are none."""

    file = "figures"
    by_section: ClassVar[BySection] = {}
