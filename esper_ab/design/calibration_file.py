"""calibration.json: the chance variation of one group, tied to task, settings and code.

It applies only to an experiment that trains this group in the same way, as `check_belongs` verifies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.outcome_window import OutcomeOver
from esper_ab.contracts.wording import significant
from esper_ab.design.outcome_windows import WindowSpread
from esper_ab.design.power import PowerTable
from esper_ab.design.shape_risk import ShapeRisk
from esper_ab.design.window_advice import GroupChange
from esper_ab.settings.circumstances import circumstances_of
from esper_ab.settings.differences import flat
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.settings.experiment import Group, ResolvedExperiment
from esper_ab.settings.option_file import load_option_file
from esper_ab.stats.curve_change import CurveChange

SCHEMA = 7
FILE_NAME = "calibration.json"
_ABSENT = "not recorded"
_NO_SOURCES = ("commit", "dirty")  # keys of `Calibration.code` that say less than the sources do


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The standard deviation between runs, with 95 % limits that assume normality, in the unit of the values."""

    runs: int
    mean: float
    sd: float  # n - 1 in the denominator
    low: float
    high: float


class Calibration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Results of a calibration, in the unit of its outcome; a result that cannot be estimated is None or empty."""

    schema: int
    mode: str  # reward mode or controller that was calibrated
    circumstances: dict[str, str]  # task, horizon, outcome, … as JSON; an experiment must have the same
    settings: dict[str, str]  # of the group, every key
    outcome: Measure  # declaration of the outcome
    code: dict[str, str]  # sources, commit, dirty, and the sources of the user's trainer and rewards
    spread: Spread  # of the runs' outcomes
    deterministic: bool  # whether a run repeated in another lane with the same randomness gave the same records
    noise: EvaluationNoise | None  # of these runs; None without an evaluation, or if it is a single episode
    planned: int  # seeds of the planned experiment
    margin: float
    margin_named: bool  # by the user or the task; if not, `planned` uncorrelated pairs can detect it with 80 % power
    power: tuple[PowerTable, ...]  # by pair correlation
    windows: tuple[WindowSpread, ...] = ()  # of the same runs, by --outcome-over; empty without a curve
    curve_change: CurveChange | None = None  # of their curves over the last third of training; None: unknown
    shape_risk: ShapeRisk | UnsetType = UNSET  # of the same runs; unset: their shape raises no error rate

    def run_sd(self, outcome_over: OutcomeOver, eval_episodes: int) -> float:
        """Return the SD, in the outcome's unit, of runs that are compared by this part of them.

        If the evaluation is compared, it has `eval_episodes` episodes.
        """
        sds = {window.outcome_over: window.sd for window in self.windows}
        sd = sds.get(outcome_over, self.spread.sd)
        if outcome_over != "evaluation" or self.noise is None:
            return sd
        return sd * math.sqrt(self.noise.variance_times(eval_episodes))

    @property
    def subject(self) -> str:
        """What was calibrated, as in "20 runs of shaped"."""
        return "your trainer" if self.mode == "trainer" else self.mode

    @property
    def group_changes(self) -> tuple[GroupChange, ...]:
        """How much the curves of the calibrated group change over the last third of training; () if unknown."""
        if self.curve_change is None:
            return ()
        return (GroupChange(group=self.mode, change=self.curve_change),)

    @property
    def sentence(self) -> str:
        """One sentence on the chance variation, for a report that has no estimate of its own."""
        spread = self.spread
        deviation = self.outcome.difference(significant(spread.sd))
        return (
            f"Runs of one mode differ by about {deviation} (standard deviation of {spread.runs} runs of "
            f"{self.subject}, 95 % limits {significant(spread.low)} to {significant(spread.high)})."
        )


_DECODER = msgspec.json.Decoder(Calibration)


def load_calibration(path: Path) -> Calibration:
    """Read the calibration at `path`, a file or an experiment directory. Raises UsageError if it cannot be read."""
    return load_option_file(path, _DECODER, option_name="calibration", schema=SCHEMA, writing_command="calibrate")


def check_belongs(calibration: Calibration, experiment: ResolvedExperiment, code: Mapping[str, str]) -> tuple[str, ...]:
    """Raise UsageError if no group of `experiment` is the calibrated group, trained under the same conditions.

    Return a note for the plan on each code of the calibration that differs from `code`. This is not an error, because
    editing a comment also changes the code's hash.
    """
    mismatches = _other_circumstances(calibration, experiment)
    if not mismatches:
        mismatches = min((_other_settings(calibration, group) for group in experiment.groups), key=len)
    if mismatches:
        raise UsageError(f"--calibration does not fit this experiment: {'; '.join(mismatches)}; calibrate again")
    return tuple(_changed_code(calibration, code))


def _changed_code(calibration: Calibration, code: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each source that is not as it was; several sources can share a commit."""
    for key, before in {"sources": "unknown", **calibration.code}.items():
        now = code.get(key, "unknown")
        if key not in _NO_SOURCES and now != before:
            name = "code" if key == "sources" else key
            yield f"The {name} has changed since the calibration (from {before} to {now})."


def _other_circumstances(calibration: Calibration, experiment: ResolvedExperiment) -> list[str]:
    """List the circumstances in which an experiment differs from the calibration."""
    circumstances_before = calibration.circumstances
    circumstances_now = circumstances_of(experiment)
    different = [
        key
        for key in {**circumstances_before, **circumstances_now}
        if circumstances_now.get(key) != circumstances_before.get(key)
    ]
    if any(window.outcome_over == experiment.outcome_over for window in calibration.windows):
        different = [key for key in different if key != "outcome_over"]
    return [
        f"{key} was {circumstances_before.get(key, _ABSENT)} and is now {circumstances_now.get(key, _ABSENT)}"
        for key in different
    ]


def _other_settings(calibration: Calibration, group: Group) -> list[str]:
    """List the settings in which a group differs from the calibrated group."""
    settings = flat(group)
    return [
        f"{key} was {calibrated} and is {settings.get(key)} in {group.name}"
        for key, calibrated in calibration.settings.items()
        if settings.get(key) != calibrated
    ]
