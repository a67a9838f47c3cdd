"""Flags of the command line -> what was asked. A flag that is not given sets nothing: defaults are of `experiment`."""

from __future__ import annotations

from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.plain_values import whole_number
from esper_ab.contracts.visible import visible_line
from esper_ab.settings.assignments import EXPERIMENT_KEYS, split_commas
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.parse import FileSettings, Request, parse, read_toml

_NEGATED = {"no_telemetry": "telemetry", "no_early_stop": "early_stop"}
_SPLIT = ("groups", "untested", "looks", "rehearsal")  # between commas
# Flags whose value is that of a setting unchanged -> its key; the other flags are converted, or are no settings.
_UNCHANGED = {key: key for key in EXPERIMENT_KEYS if key not in (*_SPLIT, "seeds", "eval_episodes")} | {
    "amp": "growth.amp", "kernel": "arithmetic.kernel", "threads": "arithmetic.threads",
    "deterministic": "arithmetic.deterministic",
}  # fmt: skip
_LISTS = {"slots": "--slots early late", "devices": "--devices cpu:0 cpu:1"}  # with an example


def parse_flags(options: dict[str, Any]) -> AskedExperiment:
    """Put flags and the file of `--config` together; UsageError, one line with the remedy.

    `options`: value by name, as click has them; a flag that a command does not have counts as not given.
    """
    return parse(*read_request(options))


def read_request(options: dict[str, Any]) -> tuple[Request, FileSettings]:
    """Read what flags and the file of `--config` say, before it is put together; UsageError as `parse_flags`."""
    return read_flags(options), read_toml(options["config"]) if options["config"] else FileSettings()


def read_flags(options: dict[str, Any]) -> Request:
    """Take from `options` what says what to run; UsageError for a list or number that is none."""
    flags: dict[str, object] = {
        key: value
        for flag, key in _UNCHANGED.items()
        if (value := options.get(flag)) is not None and (value is not False or flag == "deterministic")
    }  # 0 is a value, and refused as one
    flags |= {key: False for flag, key in _NEGATED.items() if options.get(flag)}
    for flag, example in _LISTS.items():
        if flag in flags:
            flags[flag] = [piece for piece in str(flags[flag]).split(",") if piece]
            if not flags[flag]:
                raise UsageError(f"--{flag}: names are missing, as in {example}; leave it out for all there are")
    split = {flag: split_commas(options[flag], f"--{flag}") for flag in _SPLIT if options.get(flag) is not None}
    groups = split.pop("groups", [])
    flags |= split
    if "looks" in flags:
        flags["looks"] = [_whole(piece, "--looks") for piece in split["looks"]]
    if (hosts := options.get("eval_episodes")) is not None:
        flags["eval_episodes"] = hosts if hosts == "auto" else _whole(hosts, "--eval-episodes", " or auto")
    flags |= _seeds(options.get("seeds"), options.get("max"))
    return Request(
        groups=tuple(groups),
        group=tuple(options.get("group") or ()),
        assignments=tuple(options.get("set") or ()),
        flags=flags,
    )


def _whole(text: str, origin: str, otherwise: str = "") -> int:
    """Convert a whole number typed at `origin`; UsageError for anything else. `otherwise`: what else may be typed."""
    if (found := whole_number(text)) is None:
        raise UsageError(f"{origin}: expected a whole number{otherwise}, not {visible_line(text, 40)!r}")
    return found


def _seeds(seeds: str | None, most: int | None) -> dict[str, object]:
    """Read `--seeds N`; `auto --max N`: looks on the way to N; `auto`: no maximum."""
    if seeds is None or seeds != "auto":
        if most is not None:
            raise UsageError("--max goes with --seeds auto; --seeds N is a maximum already")
        return {} if seeds is None else {"seeds": _whole(seeds, "--seeds", " or auto")}
    return {"open_ended": True} if most is None else {"seeds": most}
