"""What an assertion found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.shell_command import shell_command, typeable
from esper_ab.pytest_plugin.session import current


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The answer of an assertion that holds; that of one that does not is the text of its failure."""

    headline: str
    lines: tuple[str, ...]  # after the headline
    directory: Path  # of the experiment, for `load_experiment`; that of the project, if nothing was trained

    def __str__(self) -> str:
        return "\n".join((self.headline, *self.lines))


def report_line(directory: Path) -> str:
    """Return the command that shows the report."""
    return f"report: {shell_command('report', directory)}"


def note_answer(answer: Shown) -> None:
    """Put an answer into the report of the test that runs."""
    session = current()
    if session is not None and session.note is not None:
        session.note(answer.headline, typeable(str(answer)))
