"""Turn the flags of `growth rewards` into a RewardAuditQuestion, with every key and name checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from esper_ab.contracts import catalog
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.reward_audit import AuditedReward, RewardAuditQuestion
from esper_ab.contracts.settings import Arithmetic, GroupSettings
from esper_ab.contracts.wording import which_setting
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.schema import GROUP_FIELDS, refuse_unknown
from esper_ab.settings.values import convert_value

KERNELS = ("auto", "torch")  # auto: the native kernel if available
_SECTIONS = ("growth", "reward")
msgspec.json.Decoder(RewardAuditQuestion)  # built now, in one thread: tests/house/test_decoders.py


def make_question(
    *, rewards: Sequence[str], assignments: Sequence[Assignment], kernel: str = "auto", **options: Any
) -> RewardAuditQuestion:
    """Return the question; `options` has the values of the question's remaining fields.

    Raises UsageError for an unknown task or setting, a reward named twice, or an invalid value.
    """
    repeated_rewards = [name for name, count in Counter(rewards).items() if count > 1]
    if repeated_rewards:
        raise UsageError(f"reward {repeated_rewards[0]!r} is named twice; remove one")
    settings = _read_settings(assignments)
    modes = rewards or catalog.names("workers.kinds.growth.rewards")
    asked_rewards = tuple(
        AuditedReward(name=mode, settings=msgspec.structs.replace(settings.reward, mode=mode)) for mode in modes
    )
    refuse_unknown("kernel", kernel, KERNELS)
    arithmetic = Arithmetic() if kernel == "torch" else None
    question = RewardAuditQuestion(rewards=asked_rewards, growth=settings.growth, arithmetic=arithmetic, **options)
    try:
        question = msgspec.convert(msgspec.to_builtins(question), RewardAuditQuestion)  # checks types and ranges
    except msgspec.ValidationError as error:
        raise UsageError(f"reward audit: {error}") from None
    refuse_unknown("task", question.task, catalog.names("workers.kinds.growth.tasks"))
    return question


def _read_settings(assignments: Sequence[Assignment]) -> GroupSettings:
    """Return the default settings with the assignments applied; UsageError for a key outside growth and reward."""
    values: dict[str, dict[str, object]] = {section: {} for section in _SECTIONS}
    keys = [key for key in GROUP_FIELDS if key.partition(".")[0] in _SECTIONS and key != "reward.params"]
    for assignment in assignments:
        key = assignment.key
        origin = assignment.origin
        if key == "reward.mode":
            raise UsageError(f"{origin}: name rewards as arguments, as in esper-ab growth rewards sparse")
        if key not in keys:
            raise UsageError(f"{origin}: this is not a reward or growth setting; {which_setting(key, keys)}")
        section, _, name = key.partition(".")
        values[section][name] = convert_value(assignment)
    default = GroupSettings()
    return msgspec.structs.replace(
        default,
        growth=msgspec.structs.replace(default.growth, **values["growth"]),
        reward=msgspec.structs.replace(default.reward, **values["reward"]),
    )
