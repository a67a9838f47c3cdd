"""Run a reward audit in a child process, where users' rewards also run, and save the audit to files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from esper_ab.contracts.children import SCHEMA, Machine, RewardAudit, RewardAuditAnswer, RewardAuditQuestion, Scored
from esper_ab.contracts.errors import UsageError, refused
from esper_ab.contracts.files import make_folder, write_below
from esper_ab.contracts.settings import RewardSettings
from esper_ab.contracts.source_files import sources
from esper_ab.execution.child import answer_of
from esper_ab.settings.experiment import Group, ResolvedExperiment
from esper_ab.settings.option_file import load_option_file

# --- audited rewards -------------------------------------------------------------------------------------------------
# The part of a reward audit that concerns an experiment: the rewards of its learning groups, if the hosts are the same.


def belonging(
    reward_audit: RewardAudit, experiment: ResolvedExperiment, machine: Machine
) -> tuple[RewardAudit, tuple[str, ...]]:
    """Return the audit with only the rewards of `experiment`, in group order, and a note on missing rewards.

    Raises UsageError if the audited hosts differ from those of `experiment`, or if none of the rewards was audited.
    """
    learning = [group for group in experiment.groups if group.settings.has_policy]
    apart = _apart(reward_audit, experiment, learning)
    if apart:
        raise UsageError(
            f"the audit of --reward-audit used different hosts: {'; '.join(apart)}; audit again with "
            "`esper-ab growth rewards`"
        )
    codes = {user.reference: user.sha256 for user in machine.user_rewards}
    found = {
        group.name: [one for one in reward_audit.answer.scored if _is(one, group.settings.reward, codes)]
        for group in learning
    }
    kept = tuple({one.reward.name: one for several in found.values() for one in several}.values())
    if not kept:
        there = ", ".join(one.reward.name for one in reward_audit.answer.scored)
        raise UsageError(
            f"--reward-audit: no group learns from an audited reward with the constants of the audit; audited: {there}"
        )
    lacking = ", ".join(name for name, several in found.items() if not several)
    notes = (f"The reward audit does not cover {lacking}.",) if lacking else ()
    own = replace(
        reward_audit, question=replace(reward_audit.question,
        rewards=tuple(one.reward for one in kept)), answer=replace(reward_audit.answer, scored=kept),
    )  # fmt: skip
    return own, notes


def _apart(reward_audit: RewardAudit, experiment: ResolvedExperiment, learning: list[Group]) -> list[str]:
    """List the differences between the audited hosts and those of the experiment."""
    asked = reward_audit.question
    there = {"task": asked.task, "steps": asked.steps, "slots": reward_audit.answer.slots}
    here = {"task": experiment.task, "steps": experiment.steps, "slots": experiment.slots}
    found = [f"{key} was {there[key]} and is {here[key]}" for key in here if there[key] != here[key]]
    for group in learning:
        growth = group.settings.growth
        names = [name for name in growth.__struct_fields__ if getattr(growth, name) != getattr(asked.growth, name)]
        found += [
            f"growth.{name} was {getattr(asked.growth, name)} and is {getattr(growth, name)} in {group.name}"
            for name in names
        ]
    return found


def _is(scored: Scored, reward: RewardSettings, codes: Mapping[str, str]) -> bool:
    """Whether `reward` is the reward in `scored`, with equal constants and the same mode or function code."""
    mine, own = reward.mode, scored.reward.settings
    if replace(own, mode=mine) != reward:
        return False
    sha256 = codes.get(mine, "")
    same_code = scored.sha256 == sha256 and own.mode.rpartition(":")[2] == mine.rpartition(":")[2]
    return same_code if ":" in mine else own.mode == mine


FILE_NAME, PAGE_NAME = "reward_audit.json", "reward_audit.html"
_MODULE = "workers.commands.rewards"
_SHOWN = 12  # digits of the digest in a folder's name
_DECODER, _ANSWER = msgspec.json.Decoder(RewardAudit), msgspec.json.Decoder(RewardAuditAnswer)


def audit(question: RewardAuditQuestion) -> RewardAudit:
    """Play the behaviours and score them in a child process; UsageError, with a one-line message, if the child refuses.
    """
    own = ", ".join(one.settings.mode for one in question.rewards if ":" in one.settings.mode)
    answer = answer_of(_MODULE, question, _ANSWER, code=own)
    code = sources()
    made_from = (
        SCHEMA, question, answer.arithmetic, answer.torch_version, code, [scored.sha256 for scored in answer.scored]
    )
    digest = hashlib.sha256(msgspec.json.encode(made_from)).hexdigest()
    return RewardAudit(schema=SCHEMA, digest=digest, question=question, sources=code, answer=answer)


def check_folder(folder: Path) -> None:
    """Create `folder`; UsageError if it is not writable. Call this before an audit, because an audit takes minutes."""
    try:
        make_folder(folder)
    except OSError as error:
        raise refused(error, f"--out {folder}: {error.strerror}; choose another folder") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--out {folder}: not writable; choose another folder")


def save(reward_audit: RewardAudit, page: str, folder: Path | None) -> Path:
    """Write the data and the page into `folder`, replacing existing files, and return the folder.

    If `folder` is None, it is named after the task and the digest of the audit. Raises UsageError if the folder is not
    writable.
    """
    folder = folder or Path("reward-audits", f"{reward_audit.question.task}-{reward_audit.digest[:_SHOWN]}")
    check_folder(folder)
    write_below(folder, FILE_NAME, encode(reward_audit))
    write_below(folder, PAGE_NAME, page.encode())
    return folder


def load_reward_audit(path: Path) -> RewardAudit:
    """Read the reward audit from `path`, which is its file or folder; UsageError if the audit cannot be read."""
    return load_option_file(path, _DECODER, what="reward audit", schema=SCHEMA, made_by="growth rewards")


def encode(reward_audit: RewardAudit) -> bytes:
    """Encode a reward audit as the bytes of its file."""
    return msgspec.json.format(msgspec.json.encode(reward_audit), indent=1) + b"\n"
