"""Errors of the command line's code, said in the words of those who call it from Python or from a file.

What is asked for is checked in one place, which speaks of flags: `--n-envs 2` is `n_envs=2` to somebody who typed no
flag. Only the words change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, get_args, get_origin

from esper_ab.contracts.errors import UsageError
from esper_ab.settings.assignments import EXPERIMENT_KEYS

ARGUMENTS = {"max-parallel": "max_parallel_runs", "out": "output_dir", "replicates": "runs_per_variant"}
_FLAG = re.compile(r"(?<![\w./-])--(?P<flag>[a-z][a-z-]*[a-z])(?: (?P<value>[^\s:;]+)(?P<stop>[:;]|$)?)?")
_LISTS = ("slots", "devices")  # their values are several words
_HELP = "`esper-ab launch --help` and docs/cli.md"


@contextmanager
def in_python(names: Mapping[str, str] = ARGUMENTS) -> Iterator[None]:
    """While entered, a UsageError speaks of keys and arguments; `names`: of those called otherwise than their flag."""
    try:
        yield
    except UsageError as error:
        raise UsageError(said_in_python(str(error), names)) from None


def said_in_python(message: str, names: Mapping[str, str] = ARGUMENTS) -> str:
    """`message` without flags: `--n-envs 2` is `n_envs=2`, `--unpaired` is `unpaired`, `--set a=…` is `a=…`."""
    return _FLAG.sub(lambda found: _word(found, names), message.replace(_HELP, "docs/python.md and docs/cli.md"))


def _word(found: re.Match[str], names: Mapping[str, str]) -> str:
    flag, value, stop = found["flag"], found["value"], found["stop"] or ""
    if flag == "set" and value:
        return value + stop
    key = names.get(flag, flag.replace("-", "_"))
    if value is None:
        return key
    is_flag = key.startswith("--") or flag in _LISTS
    assigned = not is_flag and (found["stop"] is not None or _is_value(flag.replace("-", "_"), value.rstrip(",.)")))
    return f"{key}{'=' if assigned else ' '}{value}{stop}"


def _is_value(key: str, word: str) -> bool:
    """Whether the word behind a flag is its value and not how the sentence goes on."""
    kind = EXPERIMENT_KEYS.get(key)
    return word.isdigit() or (get_origin(kind) is Literal and word in get_args(kind))
