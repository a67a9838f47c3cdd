"""Tables for a user's own trainer, which has points and outcomes but no episodes or decisions."""

from __future__ import annotations

from esper_ab.contracts.wording import counted
from esper_ab.report.kinds import TableKind
from esper_ab.settings.experiment import ResolvedExperiment


def _conditions(experiment: ResolvedExperiment) -> dict[str, str]:
    return {
        "trainer": experiment.trainer,
        "points": str(experiment.episodes),
        "evaluation": f"{counted(experiment.eval_episodes, 'outcome')} per run",
    }


KIND = TableKind(
    conditions=_conditions,
    evaluated="what the trainer reports about its last state",
    changes="",
    words={
        "training episodes": "points",
        "environment steps in training": "",
        "evaluation episodes": "outcomes evaluated",
        "s / episode, median": "s / point, median",
        "decisions / s of one run": "",
        "warm-up s, median": "",
        "first episode / others": "first point / others",
        "environments failed": "outcomes that were not a number",
        "environments failed %": "outcomes that were not a number, %",
    },
)
