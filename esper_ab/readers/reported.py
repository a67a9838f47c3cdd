"""What the report of an experiment directory says about its comparisons. Loads neither numpy nor torch."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from esper_ab.contracts.answer_files import PAGE, VERDICT
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.contracts.visible import visible_line
from esper_ab.journal.fold import History
from esper_ab.journal.lock import last_holder
from esper_ab.verdict.verdict import Verdict


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one comparison, as in verdict.json."""

    a: str
    b: str
    verdict: Verdict
    headline: str = ""
    warnings: tuple[str, ...]  # the caveats without which the headline is not shown

    @property
    def lines(self) -> tuple[str, ...]:
        """The answer as lines for a terminal, with its caveats."""
        lines = (f"{self.verdict}: {self.headline}", *(f"! {warning}" for warning in self.warnings))
        return tuple(f"  {visible_line(line)}" for line in lines)


class _Document(msgspec.Struct, kw_only=True):
    comparisons: tuple[Reported, ...]
    replicates: int | None = None


_decode = msgspec.json.Decoder(_Document).decode


def no_report(experiment_dir: Path) -> str:
    """Return a line for a finished experiment if its report is not built. Returns "" if there is a report."""
    if (experiment_dir / PAGE).is_file():
        return ""
    if announcement := _announce_report(experiment_dir):
        return announcement
    return f"There is no report yet: `{shell_command('report', experiment_dir)}` writes it."


def _announce_report(experiment_dir: Path) -> str:
    """Say which process of this machine will write the report of an experiment that has just finished; "" if none."""
    process = last_holder(experiment_dir)
    if process is None or process.host != os.uname().nodename:
        return ""
    return f"The report is not there yet: process {process.pid}, which ran the experiment, writes it."


def reported(experiment_dir: Path, history: History) -> tuple[tuple[Reported, ...], str]:
    """Return the answers in the report of a finished experiment, and what is wrong with the report.

    The second value is "" unless the report's file is damaged or out of date. In that case, and if there is no report,
    there are no answers.
    """
    path = experiment_dir / VERDICT
    try:
        document = _decode(read_regular(path))
    except FileNotFoundError:
        return (), ""
    except (OSError, *UNREADABLE):
        document = _Document(comparisons=())
    answered_pairs = [(answer.a, answer.b) for answer in document.comparisons]
    planned_pairs = [(contrast.a, contrast.b) for contrast in history.design.comparisons]
    current = document.replicates in (None, history.replicates)
    if answered_pairs == planned_pairs and current:
        return document.comparisons, ""
    if not current and (announcement := _announce_report(experiment_dir)):
        return (), announcement
    remedy = shell_command("report", experiment_dir)
    return (), f"{path.name} is damaged or out of date: `{remedy}` writes it again"
