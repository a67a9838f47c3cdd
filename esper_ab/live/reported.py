"""What the report of an experiment directory says of its comparisons. Loads neither numpy nor torch."""

from __future__ import annotations

from pathlib import Path

import msgspec

from esper_ab.contracts.answer_files import PAGE, VERDICT
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.journal.fold import History
from esper_ab.verdict.word import Verdict


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one comparison, as verdict.json has it."""

    a: str
    b: str
    verdict: Verdict
    headline: str = ""


class _Document(msgspec.Struct, kw_only=True):
    comparisons: tuple[Reported, ...]
    replicates: int | None = None


_decode = msgspec.json.Decoder(_Document).decode


def no_report(experiment_dir: Path) -> str:
    """Return what there is to say of a finished experiment whose report was not built; "" where it was."""
    if (experiment_dir / PAGE).is_file():
        return ""
    return f"No report is there yet: `{shell_command('report', experiment_dir)}` makes it."


def reported(experiment_dir: Path, history: History) -> tuple[tuple[Reported, ...], str]:
    """Return the answers of a finished experiment, none when its report has not been built.

    Second: why they cannot be told, where the file is damaged or of another state; else "".
    """
    path = experiment_dir / VERDICT
    try:
        document = _decode(read_regular(path))
    except FileNotFoundError:
        return (), ""
    except (OSError, *UNREADABLE):
        document = _Document(comparisons=())
    found = document.comparisons
    planned = [(comparison.a, comparison.b) for comparison in history.design.comparisons]
    of_this_state = document.replicates in (None, history.replicates)
    if [(one.a, one.b) for one in found] == planned and of_this_state:
        return found, ""
    remedy = shell_command("report", experiment_dir)
    return (), f"{path.name} is damaged or of another state of the experiment: `{remedy}` makes it again"
