"""Sentences of a plan with a user's own trainer: the results of its rehearsal. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.outcome_summary import read_summary
from esper_ab.contracts.trainer import TrainerFacts, read_source
from esper_ab.contracts.wording import counted
from esper_ab.kinds.trainer.code_words import beside_the_code, equal_beside, in_plan
from esper_ab.kinds.trainer.rehearsed import in_lines, in_sentences
from esper_ab.plan.kind import NotesKind
from esper_ab.settings.experiment import ResolvedExperiment

_ENDED_IDLE = (
    "--end-idle: a run that has its result and then uses no CPU time and writes nothing for 30 s is ended, and its "
    "result counts."
)


class TrainerNotes(NotesKind):
    """Notes for a trainer, which has points instead of episodes."""

    episodes = "points"
    in_training = "the level near the end of training, and not the final result"

    def measured(self, label: str) -> str:
        """Return the label, because nobody but the trainer knows what it measures."""
        return label

    def size(self, experiment: ResolvedExperiment) -> str:
        """Describe the points and the evaluation of one run."""
        points = counted(experiment.episodes, "point")
        outcomes = counted(experiment.eval_episodes, "outcome")
        size = f"{points} of {experiment.trainer}; evaluation: {outcomes}"
        summary = read_summary(experiment.outcome_summary)
        if summary.declared:
            return f"{size}, {summary.words} of {read_source(experiment.outcome).key}"
        return size

    def first_lines(self, experiment: ResolvedExperiment, machine: Machine) -> tuple[str, ...]:
        """Return the outcome, the time and the memory of the rehearsal."""
        facts = _facts(machine)
        run_s = facts.point_s * experiment.episodes + facts.evaluate_s
        lines = in_lines(facts, machine.task(experiment.task).measures.outcome.label, run_s)
        return (*in_plan(facts), *lines) if facts.states else lines

    def first_limits(self, experiment: ResolvedExperiment, machine: Machine) -> Iterator[str]:
        """Yield the results of the rehearsal if they limit the verdicts, and how runs are ended."""
        facts = _facts(machine)
        if not _is_repeatable(facts):
            yield in_sentences(facts, experiment.trainer)
        if facts.ends_idle:
            yield _ENDED_IDLE
        if facts.states:
            yield from beside_the_code(facts)

    def first_notes(self, experiment: ResolvedExperiment, machine: Machine) -> Iterator[str]:
        """Yield the results of the rehearsal if they are as wished."""
        facts = _facts(machine)
        if _is_repeatable(facts):
            yield in_sentences(facts, experiment.trainer)
        if facts.states and (equal_words := equal_beside(facts)):
            yield equal_words


def _facts(machine: Machine) -> TrainerFacts:
    facts = machine.trainer
    assert facts is not None, "it was rehearsed"
    return facts


def _is_repeatable(facts: TrainerFacts) -> bool:
    return facts.repeats and facts.evaluates_alike


KIND = TrainerNotes()
