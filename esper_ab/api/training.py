"""`compare_training`: compare settings of a function that trains and returns its outcome, as `launch` does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, get_type_hints

from esper_ab.api.arguments import arguments, path_of
from esper_ab.api.function_reference import reference_of
from esper_ab.api.requested import DeclaredExperiment
from esper_ab.api.results import Results
from esper_ab.api.running import RunArguments, run_declared
from esper_ab.api.setting_names import plain
from esper_ab.api.spelling import in_python, spelled
from esper_ab.contracts.claim import Claim
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.outcome_window import OutcomeOver
from esper_ab.contracts.settings import Variances
from esper_ab.contracts.wording import did_you_mean
from esper_ab.settings.assignments import Assignment
from esper_ab.settings.schema import CODE, TRAINER
from esper_ab.settings.settings_file import FileSettings

_FEWEST_GROUPS = 2
_KEYS = {"threads": "arithmetic.threads"}  # arguments whose settings have another name
_NAMES = {  # of settings in messages, where they differ
    "max_parallel": "max_parallel_runs",
    "outcome_better": "higher or lower",
}
_DECISIONS = ("margin", "higher", "lower", "seeds")


class TrainingOptions(RunArguments, total=False):
    """Options of `compare_training`: those of `run_ab_test`, and settings named like the flags of `launch`."""

    output_dir: str | Path
    progress: bool | None
    control: str
    alpha: float
    looks: Sequence[int]
    early_stop: bool
    futility: float
    claim: Claim
    guardrails: Sequence[str]
    variances: Variances
    shape: Literal["same", "any"]
    outcome_unit: str
    outcome_range: str
    outcome_over: OutcomeOver
    rehearsal: Mapping[str, bool | int | float | str]
    code: Mapping[str, str]
    devices: Sequence[str]
    devices_per_run: int
    threads: int
    rng_seed: int


def compare_training(
    train: Callable[..., Any],
    groups: Mapping[str, Mapping[str, Any]],
    *,
    margin: float,
    higher: str | None = None,
    lower: str | None = None,
    seeds: int = 6,
    **options: Unpack[TrainingOptions],
) -> Results:
    """Call `train(seed, **settings)` for each group's settings and each seed, and compare what it returns.

    `train` returns its outcome: a number; a list, which is a curve whose last value is the outcome; or a dict of
    numbers by name, of which `higher` or `lower` names the one that decides. Higher is better, unless `lower` is given.
    `margin` is the smallest difference worth acting on. All groups are compared with the first one, or with `control`.

    Each call has a process of its own, which loads the file of `train` without its main block. If `train` has
    parameters `out` or `device`, they are the run's own folder and torch's name of its device. A function of a notebook
    is written into a file, with the globals that it uses.

    `progress` shows how far the experiment is; by default, in a terminal and in a notebook. All other options are those
    of `run_ab_test` and flags of `esper-ab launch`; `code={"base": "main", "head": "."}` trains each group with a state
    of the code. Raises UsageError, with one line, before anything starts.
    """
    given_options: dict[str, Any] = {"output_dir": "experiments", "progress": None, **options}
    _check_names(given_options)
    output_dir = path_of("output_dir", given_options.pop("output_dir"))
    progress = given_options.pop("progress")
    run_options = {name: given_options.pop(name) for name in get_type_hints(RunArguments) if name in given_options}
    run_arguments = arguments("compare_training", run_options, RunArguments)
    tables = dict(_tables(groups))
    settings = {
        "control": next(iter(tables)),
        "seeds": seeds,
        "margin": margin,
        **given_options,
        **_direction(higher, lower),
    }
    settings["trainer"] = reference_of(train, output_dir)
    file = FileSettings(folder=Path.cwd(), common=tuple(_common(settings)), tables=tables)
    declaration = DeclaredExperiment(file=file, names=_NAMES)
    if progress is None:
        progress = run_arguments.get("verbose", False) or _is_seen()
    with spelled(in_python(_NAMES)):
        return run_declared("compare_training", declaration, output_dir, run_arguments, is_watched=bool(progress))


def _check_names(options: Iterable[str]) -> None:
    """Raise UsageError for an option that does not exist."""
    known_options = get_type_hints(TrainingOptions)
    for name in options:
        if name not in known_options:
            raise UsageError(
                f"compare_training: no argument {name!r}; {did_you_mean(name, [*_DECISIONS, *known_options])}"
            )


def _direction(higher: str | None, lower: str | None) -> dict[str, str]:
    """Return the settings for the outcome's name and direction."""
    if higher and lower:
        raise UsageError("compare_training: higher and lower exclude each other, because one outcome decides")
    if lower:
        return {"outcome": lower, "outcome_better": "lower"}
    return {"outcome": higher, "outcome_better": "higher"} if higher else {}


def _tables(groups: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, tuple[Assignment, ...]]]:
    """Yield the name and the settings of each group; UsageError unless both are such."""
    expected = 'expected settings of two groups or more, as in {"low": {"lr": 3e-4}, "high": {"lr": 1e-3}}'
    if not isinstance(groups, Mapping) or len(groups) < _FEWEST_GROUPS:
        raise UsageError(f"compare_training: {expected}, not {groups!r}")
    for name, settings in groups.items():
        if not isinstance(name, str) or not isinstance(settings, Mapping):
            raise UsageError(f"compare_training: {expected}, not {name!r}: {settings!r}")
        yield name, tuple(_own(name, settings))


def _own(group: str, settings: Mapping[str, Any]) -> Iterator[Assignment]:
    for key, value in settings.items():
        origin = f"group {group!r}: {key}"
        if not isinstance(key, str) or not key.isidentifier():
            raise UsageError(f"{origin}: a setting is named like a parameter of the function, not {key!r}")
        yield Assignment(f"{TRAINER}{key}", plain(value), origin, Path.cwd(), is_text=False)


def _common(settings: Mapping[str, Any]) -> Iterator[Assignment]:
    for name, value in settings.items():
        if name == "rehearsal":
            if not isinstance(value, Mapping):
                raise UsageError(
                    f"compare_training: rehearsal: expected settings, as in {{'steps': 100}}, not {value!r}"
                )
            value = [f"{key}={part}" for key, part in value.items()]
        if name == "code":
            yield from _code(value)
            continue
        yield Assignment(_KEYS.get(name, name), plain(value), f"compare_training: {name}", Path.cwd(), is_text=False)


def _code(states: Any) -> Iterator[Assignment]:
    """Yield the state of each group as a setting; UsageError unless `states` has the names of groups."""
    if not isinstance(states, Mapping) or not all(isinstance(name, str) for name in states):
        raise UsageError(
            f'compare_training: code: expected the state of each group, as in {{"base": "main", "head": "."}}, '
            f"not {states!r}"
        )
    for name, state in states.items():
        yield Assignment(f"{CODE}.{name}", plain(state), f"compare_training: code[{name!r}]", Path.cwd(), is_text=False)


def _is_seen() -> bool:
    """Whether somebody watches this process's output: in a terminal or a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return sys.stdout.isatty() or hasattr(shell, "kernel")
