"""Names of settings in error messages, spelled as in Python or in the file that declares the experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from esper_ab.contracts.errors import Setting, Spelling, UsageError

ARGUMENTS = {"max_parallel": "max_parallel_runs", "seeds": "runs_per_variant"}


def in_python(names: Mapping[str, str] = ARGUMENTS) -> Spelling:
    """Spell `n_envs=2` and `slots=['early', 'late']`; `names`: key -> its name here, or its flag, where they differ."""

    def spell(setting: Setting) -> str:
        name, value = names.get(setting.key, setting.key), setting.value
        if value is None:
            return name
        shown = list(value) if isinstance(value, tuple) else value
        return f"{name} {shown}" if name.startswith("--") else f"{name}={shown}"

    return spell


@contextmanager
def spelled(spelling: Spelling) -> Iterator[None]:
    """While entered, a UsageError names settings as `spelling` does."""
    try:
        yield
    except UsageError as error:
        raise UsageError(error.spelled(spelling)) from None
