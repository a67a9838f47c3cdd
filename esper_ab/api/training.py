"""`compare_training`: compare settings of a function that trains and returns its outcome, as `launch` does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, get_type_hints

from esper_ab.api.arguments import arguments, path_of
from esper_ab.api.results import Results
from esper_ab.api.running import RunArguments, run_declared
from esper_ab.api.spelling import in_python, spelled
from esper_ab.api.training_declaration import EXPECTED_GROUPS, NAMES, declare_training
from esper_ab.contracts.claim import Claim
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.outcome_window import OutcomeOver
from esper_ab.contracts.settings import Variances
from esper_ab.contracts.wording import did_you_mean

_FEWEST_GROUPS = 2
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
    _check_groups(groups)
    settings = {
        "control": next(iter(groups)),
        "seeds": seeds,
        "margin": margin,
        **given_options,
        **_direction(higher, lower),
    }
    declaration = declare_training("compare_training", train, groups, settings, output_dir)
    if progress is None:
        progress = run_arguments.get("verbose", False) or _is_seen()
    with spelled(in_python(NAMES)):
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


def _check_groups(groups: object) -> None:
    """Raise UsageError unless `groups` has settings of two groups or more."""
    if not isinstance(groups, Mapping) or len(groups) < _FEWEST_GROUPS:
        raise UsageError(f"compare_training: {EXPECTED_GROUPS}, not {groups!r}")


def _is_seen() -> bool:
    """Whether somebody watches this process's output: in a terminal or a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return sys.stdout.isatty() or hasattr(shell, "kernel")
