"""`assert_learns`: the mean outcome over seeds is above a bar, or below it, with an error rate.

The first look comes after six seeds. More are added to the same experiment until the mean is claimed to be on one side
of the bar, or until the budget of seeds or minutes is used up. The rule holds at every look (`stats/mean_and_bar.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

import msgspec

from esper_ab.api.arguments import arguments
from esper_ab.api.results import Results
from esper_ab.api.running import run_declared
from esper_ab.api.spelling import in_python, spelled
from esper_ab.api.training_declaration import NAMES, declare_training
from esper_ab.campaign.answering import write_report
from esper_ab.campaign.launcher import make_launcher
from esper_ab.campaign.resuming import add_seeds
from esper_ab.campaign.running import RunOptions
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import NonNegativeInt, PositiveInt
from esper_ab.contracts.shell_command import shell_command
from esper_ab.settings.launcher import NOT_GIVEN
from esper_ab.settings.outcome_range import read_range
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.mean_and_bar import MeanAndBar, mean_and_bar
from esper_ab.testing.answer import Shown, note_answer, report_line
from esper_ab.testing.bar_words import BarQuestion, headline, outcomes_line, reason_open
from esper_ab.testing.budget import Budget
from esper_ab.testing.failing import NotShown, ending_in_words
from esper_ab.testing.folders import most_parallel, output_folder

_FUNCTION = "assert_learns"
_GROUP = "train"
_NO_MARGIN = 1e-12  # every trainer has a margin, which only a comparison uses


class LearningOptions(TypedDict, total=False):
    """Options of `assert_learns`."""

    outcome: str
    settings: Mapping[str, Any]
    outcome_range: str
    shape: Literal["same", "any"]
    alpha: Annotated[float, msgspec.Meta(gt=0.0, lt=0.5)]
    rehearsal: Mapping[str, Any]
    devices: Sequence[str]
    threads: PositiveInt
    max_parallel_runs: PositiveInt
    rng_seed: NonNegativeInt


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """What is asked, and the budget."""

    question: BarQuestion
    possible: tuple[float, float] | None  # the range of outcomes, for the rule of any shape
    budget: Budget

    def judge(self, outcomes: Sequence[float]) -> MeanAndBar:
        """Return the answer of the outcomes so far."""
        return mean_and_bar(outcomes, self.question.bar, self.question.alpha, self.possible)


@ending_in_words
def assert_learns(
    train: Callable[..., Any] | str,
    *,
    above: float | None = None,
    below: float | None = None,
    seeds: int = 20,
    minutes: float | None = None,
    **options: Unpack[LearningOptions],
) -> Shown:
    """Fail the test unless the mean outcome of `train(seed, …)` over seeds is above a bar, claimed at 5 %.

    `below` is for outcomes of which less is better. At most `seeds` runs train, six at first, for at most `minutes`.
    The test fails, too, if these decide nothing, and then says how many seeds would. `train` is a function as of
    `compare_training`, or a command, or FILE:NAME, as of `esper-ab launch`; `outcome` names the number that counts, if
    it returns several. `settings` are those of `train`.

    The claim is for outcomes that are about normal. With `shape="any"` and `outcome_range` it holds for all within this
    range, at a price in seeds.
    """
    trial = _asked(_name_of(train), above, below, Budget(_FUNCTION, seeds, minutes), options)
    results = _begin(train, trial, options)
    outcomes = _outcomes(results)
    numbers = trial.judge(outcomes)
    while not numbers.side and (seeds_then := trial.budget.next_look(len(outcomes))):
        results = _train_more(results.path, seeds_then)
        outcomes = _outcomes(results)
        numbers = trial.judge(outcomes)
    answer = _worded(trial, numbers, outcomes, results.path)
    if numbers.side != trial.question.sign:
        raise NotShown(str(answer))
    note_answer(answer)
    return answer


def _asked(name: str, above: float | None, below: float | None, budget: Budget, options: Mapping[str, Any]) -> _Trial:
    """Check the arguments; UsageError if they do not fit."""
    arguments(_FUNCTION, options, LearningOptions)
    bars = [bar for bar in (above, below) if bar is not None]
    if len(bars) != 1 or isinstance(bars[0], bool | str) or not math.isfinite(bars[0]):
        raise UsageError(f"{_FUNCTION}: expected one bar, above=NUMBER, or below=NUMBER for an outcome like a loss")
    any_shape = options.get("shape") == "any"
    question = BarQuestion(
        name=name,
        bar=float(bars[0]),
        sign=1 if above is not None else -1,
        alpha=options.get("alpha", 0.05),
        any_shape=any_shape,
    )
    low, high = read_range(options.get("outcome_range", ""))
    if not any_shape:
        return _Trial(question=question, possible=None, budget=budget)
    if low is None or high is None:
        raise UsageError(f'{_FUNCTION}: shape="any" needs the range of outcomes, as in outcome_range="0..500"')
    return _Trial(question=question, possible=(low, high), budget=budget)


def _name_of(train: object) -> str:
    """Return what an answer calls the trainer."""
    return str(getattr(train, "__name__", "")) or _GROUP


def _begin(train: Callable[..., Any] | str, trial: _Trial, options: Mapping[str, Any]) -> Results:
    """Train the first seeds."""
    given_options = dict(options)
    settings: dict[str, Any] = {
        "seeds": LEAST_PAIRS,
        "margin": _NO_MARGIN,
        "outcome_better": "higher" if trial.question.sign > 0 else "lower",
        **{key: given_options.pop(key) for key in ("outcome", "outcome_range") if key in given_options},
    }
    groups = {_GROUP: given_options.pop("settings", {})}
    given_options.pop("shape", None)
    given_options.pop("alpha", None)
    run_options = {"max_parallel_runs": given_options.pop("max_parallel_runs", most_parallel())}
    folder = output_folder()
    declaration = declare_training(_FUNCTION, train, groups, {**settings, **given_options}, folder)
    with spelled(in_python(NAMES)):
        return run_declared(
            _FUNCTION, declaration, folder, run_options, is_watched=False, check_plan=trial.budget.begin_first_look
        )


def _outcomes(results: Results) -> list[float]:
    """Return the outcomes by seed; UsageError if a run has none."""
    failed_runs = results.failure_lines
    if failed_runs or results.error:
        logs = shell_command("logs", results.path)
        raise UsageError("\n".join([results.error or f"runs failed; see `{logs}`", *failed_runs]))
    return [run.metrics["outcome"] or 0.0 for run in results[_GROUP]]


def _train_more(directory: Path, seeds: int) -> Results:
    """Train more seeds in the same experiment, until it has `seeds`."""
    add_seeds(directory, make_launcher(NOT_GIVEN), RunOptions(watched=False), seeds)
    return Results(directory, write_report(directory).content, "")


def _worded(trial: _Trial, numbers: MeanAndBar, outcomes: Sequence[float], directory: Path) -> Shown:
    """Return the answer with its reason, its outcomes, and the command that shows the report."""
    reasons = [] if numbers.side else [reason_open(trial.question, numbers, trial.budget.used())]
    return Shown(
        headline=headline(trial.question, numbers),
        lines=(*reasons, outcomes_line(outcomes), report_line(directory)),
        directory=directory,
    )
