"""Turn the values of flags into settings and assignments, and parse the lists and numbers that click leaves as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_origin

from esper_ab.contracts.errors import SettingName, UsageError, as_flag
from esper_ab.contracts.plain_values import whole_number
from esper_ab.contracts.visible import visible_line
from esper_ab.settings.assignments import Assignment, split_commas
from esper_ab.settings.schema import FIELDS, Field

_LISTS = {"slots": "--slots early late", "devices": "--devices cpu:0 cpu:1"}  # flags with lists of names, an example


def of_flags(flags: Mapping[str, object]) -> list[Assignment]:
    """Convert flags to assignments."""
    return [
        Assignment(key, value, as_flag(SettingName(key.rpartition(".")[2])), Path.cwd(), is_text=False)
        for key, value in flags.items()
    ]


def read_flags(options: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings given by flags, by key; UsageError for an invalid list or number."""
    settings: dict[str, object] = {}
    for key, setting in FIELDS.items():
        value = options.get(setting.flag)
        is_negation = setting.flag.startswith("no_")
        if key == "seeds" or value is None or value == () or (value is False and (is_negation or not setting.default)):
            continue  # a 0 is kept here and refused later
        settings[key] = False if is_negation else _flag_value(setting, value)
    higher_name = options.get("higher")
    lower_name = options.get("lower")
    if higher_name and lower_name:
        raise UsageError("--higher and --lower exclude each other, because one outcome decides")
    if higher_name or lower_name:
        settings["outcome"] = higher_name or lower_name
        settings["outcome_better"] = "higher" if higher_name else "lower"
    return settings | _read_seeds(options.get("seeds"), options.get("max"))


def _flag_value(setting: Field, value: Any) -> object:
    flag = f"--{setting.flag.replace('_', '-')}"
    if setting.key == "eval_episodes":
        if value == "auto":
            return value
        return _read_whole(value, flag, " or auto")
    if get_origin(setting.type) is not tuple:
        return value
    if isinstance(value, tuple):  # of a flag that may be repeated
        return list(value)
    if setting.key not in _LISTS:
        pieces = split_commas(value, flag)
        if setting.key == "looks":
            return [_read_whole(piece, flag) for piece in pieces]
        return pieces
    names = [piece for piece in str(value).split(",") if piece]
    if not names:
        raise UsageError(f"{flag}: name at least one, as in {_LISTS[setting.key]}, or omit the flag for all of them")
    return names


def _read_whole(text: str, origin: str, alternative: str = "") -> int:
    """Parse a whole number from `origin`; raises UsageError, which names `alternative`, for anything else."""
    number = whole_number(text)
    if number is None:
        raise UsageError(f"{origin}: expected a whole number{alternative}, not {visible_line(text, 40)!r}")
    return number


def _read_seeds(seeds: str | None, most_seeds: int | None) -> dict[str, object]:
    """Return the settings for `--seeds N`, `--seeds auto --max N` (at most N seeds) or `--seeds auto` (no maximum)."""
    if seeds == "auto":
        return {"open_ended": True} if most_seeds is None else {"seeds": most_seeds}
    if most_seeds is not None:
        raise UsageError("--max needs --seeds auto; --seeds N is already a maximum")
    if seeds is None:
        return {}
    return {"seeds": _read_whole(seeds, "--seeds", " or auto")}
