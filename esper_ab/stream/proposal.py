"""A candidate as an agent proposes it: a JSON object, or flags."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.api.setting_names import dotted
from esper_ab.contracts.code_state import is_folder
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.settings.assignments import read_assignment
from esper_ab.settings.schema import FIELDS, TRAINER, or_of_trainer

_EXAMPLE = '{"code": ".", "settings": {"lr": 0.01}, "note": "a larger step"}'
_NOTE_CHARS = 2_000


class Proposal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent wants to be tried."""

    code: str = ""  # a commit or a folder; "": that of the incumbent
    settings: dict[str, Any] = {}  # over those of the incumbent
    note: str = ""  # for people
    again: bool = False  # try it anew, at a level of its own, although it was answered before


_decode = msgspec.json.Decoder(Proposal).decode


def read_proposal(text: str) -> Proposal:
    """Read a JSON object; UsageError if it is none, or proposes nothing."""
    try:
        proposal = _decode(text.encode(errors="surrogatepass"))
    except (*UNREADABLE, RecursionError) as error:
        raise UsageError(f"candidate: {error}; expected JSON such as {_EXAMPLE}") from None
    return _checked(proposal)


def proposal_of_flags(code: str, settings: Iterable[str], note: str, *, is_repeated: bool) -> Proposal:
    """Return the candidate that flags propose; UsageError if a setting is not KEY=VALUE, or if nothing is proposed."""
    values = {}
    for text in settings:
        assignment = read_assignment(text, f"--set {text}")
        key = text.partition("=")[0].strip()  # as written, because "reward" is a name of a trainer's here
        if key in values:
            raise UsageError(f"--set {text}: {key} is set twice")
        values[key] = _typed(assignment.value)
    return _checked(Proposal(code=code, settings=values, note=note, again=is_repeated))


def _typed(text: str) -> Any:
    """Return the value of a flag as JSON would have it; anything else is text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _checked(proposal: Proposal) -> Proposal:
    if not (proposal.code or proposal.settings):
        raise UsageError(f"candidate: it changes neither code nor settings; expected JSON such as {_EXAMPLE}")
    if len(proposal.note) > _NOTE_CHARS:
        raise UsageError(f"candidate: note: at most {_NOTE_CHARS} characters, not {len(proposal.note)}")
    values: dict[str, Any] = {}
    for name, value in dotted(proposal.settings).items():
        key = _key(name)
        if key in values:
            raise UsageError(f"candidate: settings: {key} is set twice")
        values[key] = value
    code = proposal.code
    if is_folder(code):
        code = str(Path(code).expanduser().absolute())  # of the one who proposes; runs work elsewhere
    return msgspec.structs.replace(proposal, settings=values, code=code)


def _key(name: str) -> str:
    """Return the key of a setting of the trainer, whose prefix may be missing; UsageError for one of the experiment."""
    if name in FIELDS and FIELDS[name].of_trainers:
        raise UsageError(
            f"candidate: settings: {name} is the same for both groups; a candidate may change only what groups may "
            f"differ in; {or_of_trainer(name)}"
        )
    return name if "." in name else f"{TRAINER}{name}"
