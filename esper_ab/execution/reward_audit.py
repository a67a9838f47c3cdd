"""A reward audit: asked of a child of the data plane, which runs users' rewards, and kept as files."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from esper_ab.contracts.below import make_folder, write_below
from esper_ab.contracts.errors import UsageError, refused
from esper_ab.contracts.installed_code import sources
from esper_ab.contracts.reward_audit import SCHEMA, RewardAudit, RewardAuditAnswer, RewardAuditQuestion
from esper_ab.execution.child import answer_of
from esper_ab.settings.option_file import load_option_file

FILE_NAME, PAGE_NAME = "reward_audit.json", "reward_audit.html"
_MODULE = "workers.commands.rewards"
_SHOWN = 12  # digits of the digest in a folder's name
_DECODER, _decode_answer = msgspec.json.Decoder(RewardAudit), msgspec.json.Decoder(RewardAuditAnswer).decode


@dataclass(frozen=True, kw_only=True)
class RewardAuditFiles:
    """What was written."""

    data: Path
    page: Path


def audit(question: RewardAuditQuestion) -> RewardAudit:
    """Play and score in a child process; UsageError, in one line, when it refuses."""
    own = ", ".join(one.settings.mode for one in question.rewards if ":" in one.settings.mode)
    answer = _decode_answer(answer_of(_MODULE, line=msgspec.json.encode(question), code=own))
    code = sources()
    made_from = (
        SCHEMA, question, answer.arithmetic, answer.torch_version, code, [scored.sha256 for scored in answer.scored]
    )
    digest = hashlib.sha256(msgspec.json.encode(made_from)).hexdigest()
    return RewardAudit(schema=SCHEMA, digest=digest, question=question, sources=code, answer=answer)


def default_folder(reward_audit: RewardAudit) -> Path:
    """Return a folder whose name no other reward audit has."""
    return Path("reward-audits") / f"{reward_audit.question.task}-{reward_audit.digest[:_SHOWN]}"


def check_folder(folder: Path) -> None:
    """UsageError unless files can be written into `folder`, which is made; to be called before minutes are spent."""
    try:
        make_folder(folder)
    except OSError as error:
        raise refused(error, f"--out {folder}: {error.strerror}; choose another folder") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--out {folder}: it cannot be written to; choose another folder")


def save(reward_audit: RewardAudit, page: str, folder: Path) -> RewardAuditFiles:
    """Write data and page into `folder`, in place of those that are there; UsageError when it cannot be written."""
    check_folder(folder)
    files = RewardAuditFiles(data=folder / FILE_NAME, page=folder / PAGE_NAME)
    write_below(folder, FILE_NAME, encode(reward_audit))
    write_below(folder, PAGE_NAME, page.encode())
    return files


def load_reward_audit(path: Path) -> RewardAudit:
    """Read the reward audit at `path`, a file or its folder; UsageError when there is none that can be read."""
    return load_option_file(path, _DECODER, what="reward audit", schema=SCHEMA, made_by="growth rewards")


def encode(reward_audit: RewardAudit) -> bytes:
    """Encode a reward audit as the file has it."""
    return msgspec.json.format(msgspec.json.encode(reward_audit), indent=1) + b"\n"
