"""Spell names of settings in error messages as Python or an experiment file does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from esper_ab.contracts.errors import ByDoor, SettingName, Spelling, UsageError

ARGUMENTS = {"max_parallel": "max_parallel_runs", "seeds": "runs_per_variant"}


def in_python(names: Mapping[str, str] = ARGUMENTS) -> Spelling:
    """Return a function that writes settings in messages as Python does, such as `n_envs=2`.

    `names`: by key, the name to write instead, if it differs. A name that starts with "--" is written as a flag.
    """

    def spell(setting: SettingName | ByDoor) -> str:
        if isinstance(setting, ByDoor):
            return setting.in_python
        name = names.get(setting.key, setting.key)
        value = setting.value
        if value is None:
            return name
        if isinstance(value, tuple):
            value = list(value)
        if name.startswith("--"):
            return f"{name} {value}"
        return f"{name}={value}"

    return spell


@contextmanager
def spelled(spelling: Spelling) -> Iterator[None]:
    """Inside this context, spell settings in UsageErrors with `spelling`."""
    try:
        yield
    except UsageError as error:
        raise UsageError(error.spelled(spelling)) from None
