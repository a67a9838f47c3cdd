"""Results of one command that an option of another reads: a JSON file with a schema number."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files import UNREADABLE, read_regular


class _Numbered(Protocol):
    @property
    def schema(self) -> int: ...


_File = TypeVar("_File", bound=_Numbered)


def load_option_file(
    path: Path, decoder: msgspec.json.Decoder[_File], *, what: str, schema: int, made_by: str
) -> _File:
    """Read the file that an option called `what` names: `path` itself, or the file of that name in it.

    UsageError when there is none of this schema that can be read; `made_by`: the command that writes one.
    """
    file = path / f"{what.replace(' ', '_')}.json" if path.is_dir() else path
    option = "--" + what.replace(" ", "-")
    try:
        found = decoder.decode(read_regular(file).removeprefix(codecs.BOM_UTF8))
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}; `esper-ab {made_by}` writes one") from None
    except UNREADABLE as error:
        raise UsageError(f"{option} {file}: no {what} of this version: {error}") from None
    if found.schema != schema:
        raise UsageError(
            f"{option} {file}: schema {found.schema}, this version reads {schema}; "
            f"`esper-ab {made_by}` writes one anew"
        )
    return found
