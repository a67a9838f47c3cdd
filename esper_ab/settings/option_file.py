"""Read versioned JSON files, which are written by one command and accepted by an option of another command."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.unreadable import UNREADABLE


class _Numbered(Protocol):
    @property
    def schema(self) -> int: ...


_File = TypeVar("_File", bound=_Numbered)


def load_option_file(
    path: Path, decoder: msgspec.json.Decoder[_File], *, option_name: str, schema: int, writing_command: str
) -> _File:
    """Read the file for the option named `option_name`: `path` itself or, if `path` is a folder, `option_name`.json in
    that folder.

    Raises UsageError if the file cannot be read or its schema is not `schema`. `writing_command` is the command that
    writes it.
    """
    file = path / f"{option_name.replace(' ', '_')}.json" if path.is_dir() else path
    option = "--" + option_name.replace(" ", "-")
    try:
        content = decoder.decode(read_regular(file).removeprefix(codecs.BOM_UTF8))
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}; `esper-ab {writing_command}` writes one") from None
    except UNREADABLE as error:
        raise UsageError(f"{option} {file}: not a {option_name} of this version: {error}") from None
    if content.schema != schema:
        raise UsageError(
            f"{option} {file}: schema {content.schema}, but this version reads {schema}; "
            f"create it again with `esper-ab {writing_command}`"
        )
    return content
