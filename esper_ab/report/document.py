"""The document model of a report, which is rendered as text, as Markdown and as an HTML page.

A renderer skips the parts that its medium cannot show, such as figures in text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from esper_ab.report.tables.table import Table

if TYPE_CHECKING:  # loads matplotlib, which text does not need
    from esper_ab.report.figures.drawing import Drawing


@dataclass(frozen=True)
class State:
    """State of the experiment."""

    word: str  # "finished", "in progress", "stale", "incomplete", "failed", "interrupted"
    sentence: str

    @property
    def complete(self) -> bool:
        """True if the experiment finished as planned; if not, every rendering starts with a warning."""
        return self.word == "finished"

    @property
    def warning(self) -> str:
        """The start of the warning: "INCOMPLETE (stale)"."""
        if self.word == "incomplete":
            return "INCOMPLETE"
        return f"INCOMPLETE ({self.word})"


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs, under a title if there is one; `look` is "", "caveat" or, on the page, "lead"."""

    paragraphs: tuple[str, ...]
    title: str = ""
    look: str = ""


@dataclass(frozen=True)
class Item:
    """One sentence of a list, with the command that does what the sentence says, or ""."""

    sentence: str
    command: str = ""


@dataclass(frozen=True)
class Points:
    """A list under a title; an empty list is not shown."""

    title: str
    points: tuple[Item, ...]
    card: bool = False  # True: a block in a section, with a title like those of tables


@dataclass(frozen=True)
class Card:
    """The verdict on one comparison, or on several comparisons with the same verdict."""

    verdict: str
    headline: str
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdicts:
    """Verdicts, with the text that applies to all of them."""

    cards: tuple[Card, ...]
    scope: str = ""  # what the verdicts are conditional on, in one line
    shared: tuple[str, ...] = ()  # caveats of several comparisons
    where: str = ""  # the task, if there are several


@dataclass(frozen=True)
class Reasons:
    """Basis, remarks and next steps: two columns on the page, the second of which begins with the steps."""

    basis: Points
    remarks: Points
    steps: Points


@dataclass(frozen=True)
class Commands:
    """Shell lines that repeat the experiment."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Figures:
    """Figures, drawn when the page is rendered."""

    draw: Callable[[], Sequence[Drawing]]

    @cached_property
    def drawings(self) -> Sequence[Drawing]:
        """The figures, drawn once."""
        return self.draw()


@dataclass(frozen=True)
class Legend:
    """Groups with the colours that they have in the page's figures."""

    groups: tuple[str, ...]


@dataclass(frozen=True)
class Links:
    """Links to other reports: (name, address, state)."""

    links: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Section:
    """Tables and figures, side by side where the page has room; a one-screen text leaves them out.

    A section with a title is folded, and listed in the page's contents if it has a table or a figure.
    """

    nodes: tuple[Node, ...]
    title: str = ""
    key: str = ""


Node = Paragraphs | Points | Verdicts | Reasons | Commands | Table | Figures | Legend | Links | Section


@dataclass(frozen=True, kw_only=True)
class Document:
    """A whole report."""

    nodes: tuple[Node, ...]
    title: str = ""
    name: str = ""  # above the heading of the page
    question: str = ""  # the heading; "": the title
    state: State | None = None  # a warning if incomplete; None: not stated
    rest: str = ""  # the command that prints the sections that a one-screen text leaves out
    footer: str = ""  # of the page
    interactive: bool = False  # the page has a script and explains its terms
