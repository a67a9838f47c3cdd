"""A report as a tree of what it says, made once; text, Markdown and the page are three layouts of it.

A writer leaves out what its medium cannot show, such as figures in text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from esper_ab.report.tables.table import Table

if TYPE_CHECKING:  # with matplotlib, which text does without
    from esper_ab.report.figures.style import Drawing


@dataclass(frozen=True)
class State:
    """Progress of the experiment."""

    word: str  # "finished", "in progress", "stale", "incomplete", "failed", "interrupted"
    sentence: str

    @property
    def complete(self) -> bool:
        """False whenever a reader must be warned."""
        return self.word == "finished"

    @property
    def warning(self) -> str:
        """What a reader is warned with: "INCOMPLETE (stale)"."""
        return "INCOMPLETE" if self.word == "incomplete" else f"INCOMPLETE ({self.word})"


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs, under a title if it has one.

    `look`: "caveat"; or how the page shows them: "rule", "estimand".
    """

    paragraphs: tuple[str, ...]
    title: str = ""
    look: str = ""


@dataclass(frozen=True)
class Item:
    """One sentence of a list; `command` may be "" where none carries it out."""

    sentence: str
    command: str = ""


@dataclass(frozen=True)
class Points:
    """A list under a title; nothing without points."""

    title: str
    points: tuple[Item, ...]
    card: bool = False  # stands among tables, under a title like theirs


@dataclass(frozen=True)
class Card:
    """The verdict on one comparison, or on several that share it."""

    verdict: str
    headline: str
    sentence: str = ""  # "" where the numbers are left to a table
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdicts:
    """Verdicts with the caveats that apply to several of them; `where`: the task, if there are several."""

    cards: tuple[Card, ...]
    shared: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Reasons:
    """What a reader asks after the answer. The page puts the next steps first in its second column."""

    basis: Points
    remarks: Points
    steps: Points


@dataclass(frozen=True)
class Commands:
    """Shell lines that make the same experiment."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Figures:
    """Figures for the page, drawn when it is written."""

    draw: Callable[[], Sequence[Drawing]]

    @cached_property
    def drawings(self) -> Sequence[Drawing]:
        """The figures, drawn once."""
        return self.draw()


@dataclass(frozen=True)
class Legend:
    """Groups with their colours, for the page's figures."""

    groups: tuple[str, ...]


@dataclass(frozen=True)
class Links:
    """Links of the page to other reports: (name, address, state)."""

    links: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Section:
    """Tables and what belongs to them, side by side where the page has room.

    With a title it is folded away, unless it is `opened` in Markdown, and the page lists it in its contents and
    explains its terms; without tables and figures such a section is left out.
    """

    nodes: tuple[Node, ...]
    title: str = ""
    key: str = ""
    opened: bool = False


@dataclass(frozen=True, kw_only=True)
class Either:
    """Nodes whose place or wording differs between text, Markdown included, and the page."""

    text: tuple[Node, ...] = ()
    page: tuple[Node, ...] = ()


Node = Paragraphs | Points | Verdicts | Reasons | Commands | Table | Figures | Legend | Links | Section | Either


@dataclass(frozen=True, kw_only=True)
class Document:
    """A whole report."""

    nodes: tuple[Node, ...]
    title: str = ""
    signed: str = ""  # before the title in a terminal
    name: str = ""  # above the title of the page
    question: str = ""  # which the report answers; the heading of the page
    state: State | None = None  # an incomplete one is a warning; None says nothing
    footer: str = ""  # of the page
    interactive: bool = False  # the page has a script and explains its terms
