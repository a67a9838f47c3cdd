"""A gate's question as the request that `launch` makes of flags: one group per state of the code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from esper_ab.api.setting_names import plain
from esper_ab.api.spelling import spelled
from esper_ab.api.what import trainer_in
from esper_ab.contracts.claim import Claim
from esper_ab.contracts.errors import ByDoor, SettingName, UsageError
from esper_ab.contracts.wording import listed
from esper_ab.gate.budget import MOST_SEEDS
from esper_ab.gate.question import BASE, GateClaim, GateQuestion
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.parse import parse
from esper_ab.settings.request import request
from esper_ab.settings.schema import CODE, SHORT
from esper_ab.settings.settings_file import FileSettings
from esper_ab.stats.least_pairs import LEAST_PAIRS

CLAIMS: Mapping[GateClaim, Claim] = {"not-worse": "not-worse", "better": "difference"}
# Settings that a gate chooses, or that have a key of their own in gate.toml.
_DECIDED = frozenset(
    {"claim", "code", "code_kept", "control", "early_stop", "futility", "group", "groups", "guardrails"}
    | {"identical_after", "looks", "margin", "name", "open_ended", "order", "outcome", "outcome_better"}
    | {"seeds", "task", "unpaired", "untested", "variances"}
)


def ask(question: GateQuestion, states: Mapping[str, str], name: str) -> AskedExperiment:
    """Return the experiment that a gate asks for, before its seeds are fitted; UsageError if a setting is invalid.

    `states`: the state of the code of each group, as `--code` takes it.
    """
    values = dict(question.settings)
    if decided_keys := sorted(key for key in values if key.partition(".")[0] in _DECIDED):
        raise UsageError(
            f"settings: {listed(decided_keys)} cannot be set here, because the gate decides about them or has a key "
            "of its own for them"
        )
    with spelled_as_file():
        values |= {
            "name": name,
            "trainer": _trainer(question),
            CODE: [f"{group}={state}" for group, state in states.items()],
            "control": BASE,
            "margin": question.margin,
            "outcome_better": question.better,
            "claim": CLAIMS[question.claim],
            "guardrails": list(question.guardrails),
            "seeds": MOST_SEEDS,
            "looks": [MOST_SEEDS],
            "identical_after": LEAST_PAIRS,
        }
        if question.outcome:
            values["outcome"] = question.outcome
        return parse(request(FileSettings(folder=Path.cwd(), common=tuple(_assignments(values)))))


def spelled_as_file() -> AbstractContextManager[None]:
    """Inside this context, messages spell settings as gate.toml does."""
    return spelled(_spell)


def _trainer(question: GateQuestion) -> str:
    """Return the trainer as an experiment names it; UsageError if it is none."""
    trainer = trainer_in(question.train)
    if trainer is None:
        raise UsageError(f"train: {question.train} declares an experiment; name a trainer, a function or a command")
    return trainer


def _assignments(values: Mapping[str, Any]) -> Iterator[Assignment]:
    for key, value in values.items():
        yield Assignment(SHORT.get(key, key), plain(value), f"settings: {key}", Path.cwd(), is_text=False)


def _spell(setting: SettingName | ByDoor) -> str:
    if isinstance(setting, ByDoor):
        return setting.in_shell
    if setting.value is None:
        return setting.key
    value = list(setting.value) if isinstance(setting.value, tuple) else setting.value
    if isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, str):
        value = f"'{value}'"
    return f"{setting.key} = {value}"
