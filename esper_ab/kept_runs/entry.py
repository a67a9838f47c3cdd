"""One kept run as a file: a line with the sha256 of the rest, a line with the run, and the bytes of its policy."""

from __future__ import annotations

import hashlib

import msgspec

from esper_ab.contracts.records import Count, EpisodeRecord, EvaluationRecord, Sha256
from esper_ab.contracts.unreadable import UNREADABLE

FORMAT = 1


class DamagedRun(ValueError):
    """A file is no kept run, or not one that this version of esper_ab reads."""


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of a file."""

    esper_ab_kept_run: int  # the format
    sha256: Sha256  # of everything behind this line


class KeptRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The records of a run, and how they came about."""

    key: Sha256  # of everything that was asked for
    conditions: dict[str, str]  # machine and versions
    repeats: bool  # whether a seed repeated to the bit
    witness: str  # digest of the first seed's run of the same group and experiment, which tells states of files apart
    source: str  # name of the experiment
    trained_at: str  # ISO 8601
    episodes: tuple[EpisodeRecord, ...]
    evaluation: EvaluationRecord
    policy_bytes: Count


_decode_header = msgspec.json.Decoder(Header).decode
_decode_run = msgspec.json.Decoder(KeptRun).decode


def encode(run: KeptRun, policy: bytes) -> bytes:
    """Return the content of a file."""
    body = msgspec.json.encode(run) + b"\n" + policy
    header = Header(esper_ab_kept_run=FORMAT, sha256=hashlib.sha256(body).hexdigest())
    return msgspec.json.encode(header) + b"\n" + body


def decode(data: bytes) -> tuple[KeptRun, bytes]:
    """Return the run and its policy; DamagedRun if the content is not as it was written."""
    first_line, _, body = data.partition(b"\n")
    try:
        header = _decode_header(first_line)
        if header.esper_ab_kept_run != FORMAT:
            raise DamagedRun(f"format {header.esper_ab_kept_run}, expected {FORMAT}")
        if hashlib.sha256(body).hexdigest() != header.sha256:
            raise DamagedRun("its content has changed")
        run_line, _, policy = body.partition(b"\n")
        run = _decode_run(run_line)
    except UNREADABLE as error:
        raise DamagedRun(str(error)) from None
    if len(policy) != run.policy_bytes or hashlib.sha256(policy).hexdigest() != run.evaluation.policy_sha256:
        raise DamagedRun("its policy has changed")
    return run, policy
