"""A function that trains and its groups, as a declared experiment: the checks that need neither it nor the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from esper_ab.api.function_reference import reference_of
from esper_ab.api.requested import DeclaredExperiment
from esper_ab.api.setting_names import plain
from esper_ab.contracts.errors import UsageError
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.schema import CODE, TRAINER
from esper_ab.settings.settings_file import FileSettings

NAMES = {  # of settings in messages, where they differ
    "max_parallel": "max_parallel_runs",
    "outcome_better": "higher or lower",
}
EXPECTED_GROUPS = 'expected settings of two groups or more, as in {"low": {"lr": 3e-4}, "high": {"lr": 1e-3}}'
_KEYS = {"threads": "arithmetic.threads"}  # arguments whose settings have another name


def declare_training(
    caller: str,
    train: object,
    groups: Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Any],
    output_dir: Path,
) -> DeclaredExperiment:
    """Declare the runs of `train` with the settings of each of `groups`, and with `settings` of the experiment.

    `train` is a function, or a command or FILE:NAME. `caller`, for messages, is the function of ours that they were
    given to. Raises UsageError for a function that other processes could not call, and for groups and settings of the
    wrong form.
    """
    tables = {name: tuple(_own(caller, name, group)) for name, group in groups.items()}
    trainer = train if isinstance(train, str) else reference_of(train, output_dir, caller)
    settings = {**settings, "trainer": trainer}
    file = FileSettings(folder=Path.cwd(), common=tuple(_common(caller, settings)), tables=tables)
    return DeclaredExperiment(file=file, names=NAMES)


def _own(caller: str, group: Any, settings: Any) -> Iterator[Assignment]:
    """Yield the settings of a group."""
    if not isinstance(group, str) or not isinstance(settings, Mapping):
        raise UsageError(f"{caller}: {EXPECTED_GROUPS}, not {group!r}: {settings!r}")
    for key, value in settings.items():
        origin = f"group {group!r}: {key}"
        if not isinstance(key, str) or not key.isidentifier():
            raise UsageError(f"{origin}: a setting is named like a parameter of the function, not {key!r}")
        yield Assignment(f"{TRAINER}{key}", plain(value), origin, Path.cwd(), is_text=False)


def _common(caller: str, settings: Mapping[str, Any]) -> Iterator[Assignment]:
    """Yield the settings of the experiment."""
    for name, value in settings.items():
        if name == "rehearsal":
            if not isinstance(value, Mapping):
                raise UsageError(f"{caller}: rehearsal: expected settings, as in {{'steps': 100}}, not {value!r}")
            value = [f"{key}={part}" for key, part in value.items()]
        if name == "code":
            yield from _code(caller, value)
            continue
        yield Assignment(_KEYS.get(name, name), plain(value), f"{caller}: {name}", Path.cwd(), is_text=False)


def _code(caller: str, states: Any) -> Iterator[Assignment]:
    """Yield the state of each group as a setting; UsageError unless `states` has the names of groups."""
    if not isinstance(states, Mapping) or not all(isinstance(name, str) for name in states):
        raise UsageError(
            f'{caller}: code: expected the state of each group, as in {{"base": "main", "head": "."}}, not {states!r}'
        )
    for name, state in states.items():
        yield Assignment(f"{CODE}.{name}", plain(state), f"{caller}: code[{name!r}]", Path.cwd(), is_text=False)
