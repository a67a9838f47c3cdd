"""An appraisal of rewards: asked of a child of the data plane, which runs users' rewards, and kept as files."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from esper_ab.contracts.appraisal import SCHEMA, Appraisal, AppraisalAnswer, AppraisalQuestion
from esper_ab.contracts.below import make_folder, write_below
from esper_ab.contracts.errors import UsageError, refused
from esper_ab.contracts.installed_code import sources
from esper_ab.execution.child import answer_of
from esper_ab.settings.option_file import load_option_file

FILE_NAME, PAGE_NAME = "appraisal.json", "appraisal.html"
_MODULE = "workers.commands.rewards"
_SHOWN = 12  # digits of the digest in a folder's name
_DECODER, _decode_answer = msgspec.json.Decoder(Appraisal), msgspec.json.Decoder(AppraisalAnswer).decode


@dataclass(frozen=True, kw_only=True)
class AppraisalFiles:
    """What was written."""

    data: Path
    page: Path


def appraise(question: AppraisalQuestion) -> Appraisal:
    """Play and score in a child process; UsageError, in one line, when it refuses."""
    own = ", ".join(one.settings.mode for one in question.rewards if ":" in one.settings.mode)
    answer = _decode_answer(answer_of(_MODULE, line=msgspec.json.encode(question), code=own))
    code = sources()
    made_from = (
        SCHEMA, question, answer.arithmetic, answer.torch_version, code, [scored.sha256 for scored in answer.scored]
    )
    digest = hashlib.sha256(msgspec.json.encode(made_from)).hexdigest()
    return Appraisal(schema=SCHEMA, digest=digest, question=question, sources=code, answer=answer)


def default_folder(appraisal: Appraisal) -> Path:
    """Return a folder whose name no other appraisal has."""
    return Path("appraisals") / f"{appraisal.question.task}-{appraisal.digest[:_SHOWN]}"


def check_folder(folder: Path) -> None:
    """UsageError unless files can be written into `folder`, which is made; to be called before minutes are spent."""
    try:
        make_folder(folder)
    except OSError as error:
        raise refused(error, f"--out {folder}: {error.strerror}; choose another folder") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--out {folder}: it cannot be written to; choose another folder")


def save(appraisal: Appraisal, page: str, folder: Path) -> AppraisalFiles:
    """Write data and page into `folder`, in place of those that are there; UsageError when it cannot be written."""
    check_folder(folder)
    files = AppraisalFiles(data=folder / FILE_NAME, page=folder / PAGE_NAME)
    write_below(folder, FILE_NAME, encode(appraisal))
    write_below(folder, PAGE_NAME, page.encode())
    return files


def load_appraisal(path: Path) -> Appraisal:
    """Read the appraisal at `path`, a file or its folder; UsageError when there is none that can be read."""
    return load_option_file(path, _DECODER, what="appraisal", schema=SCHEMA, made_by="rewards")


def encode(appraisal: Appraisal) -> bytes:
    """Encode an appraisal as the file has it."""
    return msgspec.json.format(msgspec.json.encode(appraisal), indent=1) + b"\n"
