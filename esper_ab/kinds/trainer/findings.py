"""What an analysis adds for a user's own trainer: the findings of its rehearsal, without further claims. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.analysis.kind import FindingsKind
from esper_ab.analysis.observe import ComparedPairs, digests_of
from esper_ab.contracts.trainer import is_command
from esper_ab.contracts.wording import listed
from esper_ab.journal.events import TrainerMended
from esper_ab.journal.fold import History
from esper_ab.kinds.trainer.code_words import beside_the_code, equal_beside, states_words
from esper_ab.kinds.trainer.rehearsed import in_sentences
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.finding import BESIDE_THE_CODE, MIXED_CODE, SEED, Finding

_NO_REPEAT = (
    "A seed does not repeat: in the rehearsal, the same seed gave another outcome, so the pairs may share nothing."
)
_NO_EFFECT = (
    "All runs of a group gave the same numbers, and those of the groups differ: if the trainer ignores its seed, each "
    "group is one run, repeated."
)


class TrainerFindings(FindingsKind):
    """Findings for a user's trainer, which has points instead of episodes."""

    def findings(self, history: History, pairs: ComparedPairs) -> Iterator[Finding]:
        """Yield the results of the rehearsal, and a note if the trainer's files were changed after it."""
        facts = history.plan.trainer
        if facts is not None:
            outcome = f"The outcome was {facts.found}. " if facts.found else ""
            sentences = in_sentences(facts, history.plan.experiment.trainer)
            yield Finding("rehearsal", "notes", (), f"{outcome}{sentences}")
            if not facts.outcome_repeats:
                yield Finding(SEED, "notes", (), _NO_REPEAT)
            if _ignores_seeds(history):
                yield Finding(SEED, "notes", (), _NO_EFFECT)
            if facts.states:
                yield Finding("states of the code", "notes", (), " ".join((states_words(facts), equal_beside(facts))))
                for sentence in beside_the_code(facts):
                    yield Finding(BESIDE_THE_CODE, "notes", (), sentence)
        if history.mended is not None:
            sentence = (
                "The trainer's files were changed after the rehearsal, before a seed was complete; the new ones were "
                f"not rehearsed. {_describe_earlier_records(history.mended)}"
            )
            yield Finding("mended", "notes", (), sentence)
            yield from _mixed_code(history, history.mended)

    def budget(self, experiment: ResolvedExperiment) -> str:
        """Describe a run in commands or trainings, and in points."""
        work = "command" if is_command(experiment.trainer) else "training"
        if experiment.episodes == 1:
            return f"one {work} per run"
        return f"one {work} per run, which reports {experiment.episodes} points"


def _ignores_seeds(history: History) -> bool:
    """True if, in each group, no record depends on the seed, although groups differ.

    The rehearsal cannot tell it where all numbers are 0 or 1.
    """
    records = []
    for group in history.groups:
        evaluated_runs = [run for run in history.of_group(group) if run.evaluation is not None]
        records.append({tuple(digests_of(run).values()) for run in evaluated_runs})
        if len(evaluated_runs) < LEAST_PAIRS or len(records[-1]) > 1:
            return False
    return len(set.union(*records)) > 1


def _mixed_code(history: History, mended_trainer: TrainerMended) -> Iterator[Finding]:
    """Yield a finding for each group with results that come, at least in part, from the files before a change."""
    for group in history.groups:
        evaluated_runs = [run for run in history.of_group(group) if run.evaluation is not None]
        names = [run.ref.name for run in evaluated_runs if run.ref.name in mended_trainer.before]
        if names:
            were = "was" if len(names) == 1 else "were"
            sentence = (
                f"{listed(names)} {were} trained, at least in part, with the trainer's files before they were changed, "
                "and later runs with the changed ones: a difference may come from that change."
            )
            yield Finding(MIXED_CODE, "notes", (group,), sentence)


def _describe_earlier_records(mended_trainer: TrainerMended) -> str:
    if not mended_trainer.before:
        return "All records were made with the new files."
    return f"Made with the earlier files: records of {', '.join(mended_trainer.before)}."


KIND = TrainerFindings()
