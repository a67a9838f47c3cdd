"""Rehearses a trainer before any budget is spent: a Python trainer (`python_rehearsal`) or a command."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.measures import Measure
from esper_ab.contracts.trainer import TrainerFacts, TrainerQuestion, is_command, is_function
from workers.kinds.trainer.command_rehearsal import rehearse_command
from workers.kinds.trainer.function_rehearsal import rehearse_function
from workers.kinds.trainer.idling import IDLE_LIMITS, IdleLimits
from workers.kinds.trainer.rehearsal_setup import Doing


def rehearse(
    question: TrainerQuestion, measure: Measure, doing: Doing, limits: IdleLimits = IDLE_LIMITS
) -> TrainerFacts:
    """Load and rehearse a trainer, whose outcome is declared as `measure`; a fault becomes the answer's `problem`."""

    def rehearse_one(own_question: TrainerQuestion) -> TrainerFacts:
        if is_command(own_question.reference):
            return rehearse_command(own_question, measure, doing, limits)
        if is_function(own_question.reference):
            return rehearse_function(own_question, measure, doing, limits)
        from workers.kinds.trainer.python_rehearsal import rehearse_python  # imports torch

        return rehearse_python(own_question, measure, doing, limits)

    try:
        if question.states:
            from workers.kinds.trainer.states_rehearsal import rehearse_states  # most have one state of the code

            return rehearse_states(question, rehearse_one, doing)
        return rehearse_one(question)
    except (ValueError, OSError) as error:
        subject = f"trainer {Path(question.reference).name}: "  # which the asker's message has, with the path
        return TrainerFacts(problem=" ".join(str(error).split()).removeprefix(subject))
