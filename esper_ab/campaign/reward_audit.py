"""Run a reward audit in a child process, where users' rewards also run, and save the audit to files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import SettingName, UsageError, refused
from esper_ab.contracts.files_below import make_folder, write_below
from esper_ab.contracts.installed_code import sources
from esper_ab.contracts.reward_audit import SCHEMA, RewardAudit, RewardAuditAnswer, RewardAuditQuestion
from esper_ab.control.child_answer import answer_of
from esper_ab.settings.option_file import load_option_file

FILE_NAME = "reward_audit.json"
PAGE_NAME = "reward_audit.html"
_MODULE = "workers.kinds.growth.commands.rewards"
_SHOWN = 12  # digits of the digest in a folder's name
_DECODER = msgspec.json.Decoder(RewardAudit)
_ANSWER = msgspec.json.Decoder(RewardAuditAnswer)


def audit(question: RewardAuditQuestion) -> RewardAudit:
    """Play the behaviours and score them in a child process.

    UsageError, with a one-line message, if the child refuses.
    """
    own_modes = ", ".join(reward.settings.mode for reward in question.rewards if ":" in reward.settings.mode)
    answer = answer_of(_MODULE, question, _ANSWER, code=own_modes)
    code = sources()
    digest_input = (
        SCHEMA,
        question,
        answer.arithmetic,
        answer.torch_version,
        code,
        [scored_reward.sha256 for scored_reward in answer.scored],
    )
    digest = hashlib.sha256(msgspec.json.encode(digest_input)).hexdigest()
    return RewardAudit(schema=SCHEMA, digest=digest, question=question, sources=code, answer=answer)


def check_folder(folder: Path) -> None:
    """Create `folder`; UsageError if it is not writable. Call this before an audit, because an audit takes minutes."""
    try:
        make_folder(folder)
    except OSError as error:
        raise refused(error, SettingName("out", folder), f": {error.strerror}; choose another folder") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(SettingName("out", folder), ": not writable; choose another folder")


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
    return load_option_file(path, _DECODER, option_name="reward audit", schema=SCHEMA, writing_command="growth rewards")


def encode(reward_audit: RewardAudit) -> bytes:
    """Encode a reward audit as the bytes of its file."""
    return msgspec.json.format(msgspec.json.encode(reward_audit), indent=1) + b"\n"
