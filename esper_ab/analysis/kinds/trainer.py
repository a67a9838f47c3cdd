"""A user's own trainer: reports the findings of its rehearsal, without further claims."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.analysis.kinds import AnalysisKind
from esper_ab.analysis.observe import Pairs
from esper_ab.contracts.trainer import is_command
from esper_ab.journal.events import TrainerMended
from esper_ab.journal.fold import History
from esper_ab.plan.trainer_code import found
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.verdict.finding import Finding


def _findings(history: History, pairs: Pairs) -> Iterator[Finding]:
    facts = history.plan.trainer
    if facts is not None:
        yield Finding("rehearsal", "notes", (), found(facts, history.plan.experiment.trainer))
    if history.mended is not None:
        sentence = (
            "The trainer's files were changed after the rehearsal, before a seed was complete; the new ones were not "
            f"rehearsed. {_made_before(history.mended)}"
        )
        yield Finding("mended", "notes", (), sentence)


def _made_before(mended: TrainerMended) -> str:
    if not mended.before:
        return "All records were made with the new files."
    return f"Made with the earlier files: records of {', '.join(mended.before)}."


def _budget(experiment: ResolvedExperiment) -> str:
    work = "command" if is_command(experiment.trainer) else "training"
    if experiment.episodes == 1:
        return f"one {work} per run"
    return f"one {work} per run in {experiment.episodes} points"


KIND = AnalysisKind(findings=_findings, budget=_budget)
