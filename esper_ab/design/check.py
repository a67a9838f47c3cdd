"""Refuse settings from which no design can be made: unknown groups, invalid looks, futility without looks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.claim import Claim
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.settings import Variances
from esper_ab.contracts.wording import counted
from esper_ab.design.design import SEVERAL_LOOKS_FROM, comparisons, default_looks, looks_of
from esper_ab.design.guardrails import check_guardrails
from esper_ab.design.non_inferiority import check_claim
from esper_ab.settings.experiment import ExperimentSettings
from esper_ab.stats.least_pairs import LEAST_PAIRS

LEAST_KEPT = 0.5  # least power that stopping for futility may keep
LEAST_SHARING = 2  # comparisons in a task that may share their variance


def check_design(experiment: ExperimentSettings) -> None:
    """Raise UsageError for an unknown control or untested group, and for invalid looks or futility."""
    names = [group.name for group in experiment.groups]
    if len(names) == 1:
        from esper_ab.design.alone import check_alone  # `status` does not need it

        check_alone(experiment, names[0])
    _check_groups(experiment, names)
    if experiment.looks and experiment.open_ended:
        raise UsageError(
            SettingName("looks"),
            " needs a fixed number of seeds; without a maximum there is an interim look after every pair",
        )
    check_looks(experiment.looks, experiment.seeds, experiment.claim)
    if experiment.claim != "difference" or experiment.guardrails:
        _check_one_sided(experiment, [name for name in names if name not in experiment.untested])
    if experiment.futility:
        _check_futility_of_experiment(experiment)
    if experiment.variances == "moderated":
        _check_moderated(experiment)


def _check_one_sided(experiment: ExperimentSettings, compared_groups: Sequence[str]) -> None:
    """Raise UsageError if the plan could not show its one-sided claim, or that its guardrails hold."""
    seeds = None if experiment.open_ended else experiment.seeds
    check_claim(
        experiment.claim,
        groups=compared_groups,
        control=experiment.control,
        seeds=seeds,
        looks=experiment.looks,
        futility=experiment.futility,
    )
    if experiment.guardrails and experiment.shape == "any":
        raise UsageError(
            SettingName("guardrails", experiment.guardrails[0]),
            ": a guardrail assumes that both groups have the same shape, because its measure has no declared range; "
            "leave out ",
            SettingName("shape", "any"),
        )
    check_guardrails(
        experiment.guardrails,
        groups=compared_groups,
        control=experiment.control,
        seeds=seeds,
        looks=experiment.looks,
    )


def _check_groups(experiment: ExperimentSettings, names: Sequence[str]) -> None:
    """Raise UsageError if the control or an untested group is unknown, or if no two groups are left to compare."""
    named_groups = [("control", experiment.control), *(("untested", name) for name in experiment.untested)]
    for key, name in named_groups:
        if name and name not in names:
            raise UsageError(SettingName(key, name), f": no such group; the groups are {', '.join(names)}")
    if experiment.control in experiment.untested:
        raise UsageError(
            SettingName("untested", experiment.control),
            ": the control must be tested, because the other groups are compared with it",
        )
    if len(names) > 1 and not comparisons(experiment):
        raise UsageError(SettingName("untested"), " leaves fewer than two groups to compare")


def check_looks(looks: tuple[int, ...], replicates: int, claim: Claim = "difference") -> None:
    """Raise UsageError if looks do not ascend, do not end at `replicates` or start too early; () is valid."""
    if looks and (list(looks) != sorted(set(looks)) or looks[-1] != replicates):
        raise UsageError(
            SettingName("looks", looks),
            f": looks must ascend and end at {replicates}, the number of seeds, as in ",
            SettingName("looks", default_looks(replicates, claim)),
        )
    if len(looks) > 1 and looks[0] < LEAST_PAIRS:
        raise UsageError(SettingName("looks", looks[0]), f": the first look needs at least {LEAST_PAIRS} seeds")


def check_futility(futility: float, *, seeds: int, looks: tuple[int, ...], early_stop: bool) -> None:
    """Raise UsageError if the power is invalid or the plan has no look at which to stop for futility.

    `looks`: numbers of seeds at which the plan looks.
    """
    asked_setting = SettingName("futility", futility)
    if not LEAST_KEPT <= futility < 1.0:
        raise UsageError(
            asked_setting, f": the power to keep must be at least {LEAST_KEPT} and below 1, or 0 to turn it off"
        )
    if not early_stop:
        raise UsageError(asked_setting, " stops comparisons early, but early stopping is off; choose one")
    if len(looks) == 1:
        raise UsageError(
            asked_setting,
            f": a plan of {counted(seeds, 'seed')} has a single look, so nothing can "
            f"stop early; use at least {SEVERAL_LOOKS_FROM} seeds, or set ",
            SettingName("looks"),
        )


def _check_futility_of_experiment(experiment: ExperimentSettings) -> None:
    """Raise UsageError if the plan has no maximum, or as `check_futility` does."""
    if experiment.open_ended:
        raise UsageError(
            SettingName("futility", experiment.futility),
            " needs a fixed number of seeds, because without a maximum no look is planned",
        )
    check_futility(
        experiment.futility,
        seeds=experiment.seeds,
        looks=looks_of(experiment),
        early_stop=experiment.early_stop,
    )


def _check_moderated(experiment: ExperimentSettings) -> None:
    """Raise UsageError if the comparisons of the plan can share no variance, or not at planned looks."""
    asked_setting = SettingName("variances", experiment.variances)
    if experiment.open_ended:
        raise UsageError(
            asked_setting,
            " needs a fixed number of seeds, because a look after every pair needs each comparison's own variance",
        )
    if experiment.unpaired:
        raise UsageError(asked_setting, " is for runs paired by seed, not for ", SettingName("unpaired"))
    check_variances(experiment.variances, len(comparisons(experiment)))


def check_variances(variances: Variances, n_comparisons: int) -> None:
    """Raise UsageError if moderated variances are wanted for fewer than two comparisons in a task."""
    if variances == "moderated" and n_comparisons < LEAST_SHARING:
        raise UsageError(
            SettingName("variances", variances),
            f" shares variances between comparisons, but the plan has only {n_comparisons}; compare three groups or "
            "more, or leave it out",
        )
