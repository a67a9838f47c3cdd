"""What has to be equal in two experiments for runs of one to say something about runs of the other. Pure.

Whatever reads another experiment asks here whether its runs were trained and measured in the same way: `compare`, with
one rng seed and with several, a calibration, and the pooling of replications. The treatments of groups may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from esper_ab.contracts.plain_values import as_text
from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.trainer import TrainerFacts, is_command
from esper_ab.settings.experiment import Group, ResolvedExperiment

TRAINER_SOURCE = "source of the trainer"
_SHOWN_CHARS = 12  # of a sha256
_WITHOUT = {"trainer": "none", "source of the outcome": "the default", "summary of the outcome": "the last value"}


class Treatment(NamedTuple):
    """What the runs of a group are trained with; groups of equal treatments are one group, whatever they are called."""

    settings: GroupSettings
    state: str  # the commit of its code; "": the files as they are


def circumstances_of(experiment: ResolvedExperiment) -> dict[str, str]:
    """Return the conditions that must be equal for comparable runs, as JSON by key, without group settings.

    What an experiment does not have, such as a trainer, is left out.
    """
    kept_settings = {
        "task": experiment.task,
        "trainer": _trainer_of(experiment.trainer),
        "source of the outcome": experiment.outcome,
        "summary of the outcome": experiment.outcome_summary,
        "slots": experiment.slots,
        "n_envs": experiment.n_envs,
        "episodes": experiment.episodes,
        "steps": experiment.steps,
        "outcome_over": experiment.outcome_over,
        "arithmetic": experiment.arithmetic,
    }
    return {
        key: msgspec.json.encode(value).decode() for key, value in kept_settings.items() if value or key not in _WITHOUT
    }


def circumstances_in_words(experiment: ResolvedExperiment) -> dict[str, str]:
    """Return the circumstances as text by key; what the experiment does not have has words, too."""
    words = {"task": "", **_WITHOUT}
    for key, text in circumstances_of(experiment).items():
        value = msgspec.json.decode(text)
        if isinstance(value, dict):
            words |= {f"{key}.{name}": as_text(part) for name, part in value.items()}
        else:
            words[key] = as_text(value)
    return words | {"task": experiment.task_title}


def _trainer_of(reference: str) -> str:
    """Return a command as it is, and the name of a file or function without its folders, which may have moved."""
    return reference if is_command(reference) else reference.rpartition("/")[2]


def source_of_trainer(facts: TrainerFacts | None, mended_sha256: str = "") -> str:
    """Return what identifies the files of a trainer; "" without one. `mended_sha256`: of changed files, used later."""
    if facts is None:
        return ""
    if facts.states:
        return "a state of the code per group"
    sha256s: Sequence[str] = [facts.sha256, mended_sha256] if mended_sha256 else [facts.sha256]
    return ", then ".join(sha256[:_SHOWN_CHARS] for sha256 in sha256s) or "not known"


def treatment_of(experiment: ResolvedExperiment, group: Group) -> Treatment:
    """Return the treatment of a group."""
    return Treatment(settings=group.settings, state=experiment.states_of_code.get(group.name, ""))
