"""--references and --references-limit: a folder of runs that are kept for later experiments. Pure.

No result of a run depends on these, so they are no settings of an experiment. Which runs are reused is in the journal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.errors import UsageError

DEFAULT_LIMIT = "1GB"
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(|k|M|G|T)(|B|iB)", re.IGNORECASE)
_LEAST_WITHOUT_UNIT = 1e6  # bytes
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True, kw_only=True)
class References:
    """A folder of kept runs. Experiments that use it at the same time do not disturb one another."""

    folder: Path
    limit_bytes: int  # those used longest ago are removed beyond it


def read_references(folder: Path | None, limit: str | None, names: tuple[str, str]) -> References | None:
    """Return the folder and its limit; None without a folder. `names`: of both, for messages.

    Raises UsageError for a size that is none, for a limit without a folder, and for a file in the folder's place.
    """
    folder_name, limit_name = names
    if folder is None:
        if limit is not None:
            raise UsageError(f"{limit_name} {limit}: there is no folder of kept runs to limit; add {folder_name}")
        return None
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder_name} {folder}: this is a file; name the folder in which runs are kept")
    return References(folder=folder.resolve(), limit_bytes=read_size(limit or DEFAULT_LIMIT, limit_name))


def read_size(text: str, name: str) -> int:
    """Return the bytes of a size, as in 500MB or 2GiB.

    UsageError, with the name of the setting, for other text, and for so few bytes that a unit was forgotten.
    """
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        raise UsageError(f"{name} {text!r}: expected a size, as in 500MB or 2GB")
    number, prefix, unit = size.groups()
    if not (prefix or unit) and 0.0 < float(number) < _LEAST_WITHOUT_UNIT:
        raise UsageError(f"{name} {text!r}: this would be {number} bytes; add the unit, as in {number}MB or {number}GB")
    base = 1024 if unit.lower() == "ib" else 1000
    return int(float(number) * base ** _POWERS[prefix.lower()])
