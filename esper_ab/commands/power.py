"""`esper-ab power`: compute, before any training, what difference N seeds can detect and the seeds a margin needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import UNSET, UnsetType

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._experiment_directory import ExperimentDirectory
from esper_ab.commands._parameters import MOST_SEEDS, PATH, Flags, json_flag, valued
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.plain_values import LARGEST
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible_json
from esper_ab.design.check import LEAST_KEPT, check_variances
from esper_ab.journal.load import load
from esper_ab.settings.outcome_range import read_range

if TYPE_CHECKING:
    from esper_ab.design.power_tables import Known


@command_with(
    "esper-ab power --sd-run 3.5 --margin 2 --seeds 10",
    "esper-ab power --experiment experiments/EXPERIMENT --margin 1 --comparisons 3",
)
@valued("--sd-run", "SD", "Standard deviation between runs of one group, in the unit of the outcome.", type=float)
@valued("--calibration", "FILE", "Take the standard deviation from a calibration.json.", type=PATH)
@valued(
    "--experiment",
    "EXPERIMENT",
    "Take the standard deviation and the correlation of pairs from an earlier experiment directory.",
    type=ExperimentDirectory(),
)
@valued(
    "--rho",
    "R",
    "Correlation of the two runs of a pair. [default: the one in EXPERIMENT; else the answers for 0, 0.3 and 0.6]",
    type=float,
)
@valued("--seeds", "R", "Number of seeds of the plan in question.", type=click.IntRange(1, MOST_SEEDS), default=10)
@valued(
    "--margin",
    "SIZE",
    "The smallest difference worth acting on, in the unit of the outcome. [default: from FILE or EXPERIMENT]",
    type=float,
)
@valued("--alpha", "P", "Error rate of the whole experiment.", type=float, default=0.05)
@valued(
    "--comparisons", "M", "Number of comparisons that share the error rate.", type=click.IntRange(1, LARGEST), default=1
)
@valued(
    "--orders/--no-orders",
    None,
    "Whether device and start order can affect results, which `launch --dry-run` shows. [default: as in EXPERIMENT; "
    "else --orders]",
    default=None,
)
@valued(
    "--futility",
    "POWER",
    "Show the power that stopping for futility would cost and the seeds it would save, if stopping must keep a power "
    "of POWER (such as 0.8) at the margin. [default: off]",
    type=float,
    default=0.0,
)
@valued(
    "--claim",
    "difference|not-worse",
    "not-worse: show the power to claim that a group is not worse by the margin or more, if the groups do not differ.",
    type=click.Choice(("difference", "not-worse")),
    default="difference",
)
@valued(
    "--variances",
    "own|moderated",
    "moderated: show the power of comparisons whose variances are shrunk to the mean of all.",
    type=click.Choice(("own", "moderated")),
    default="own",
)
@valued(
    "--shape",
    "same|any",
    "any: the seeds of claims that hold whatever the distributions of the groups, also with rare failures in one of "
    "them; this needs --outcome-range, unless the outcome of FILE or EXPERIMENT has a range. [default: same]",
    type=click.Choice(("same", "any")),
)
@valued("--outcome-range", "LOW..HIGH", "Range of possible outcomes, for --shape any.", default="")
@json_flag
def command(**options: Any) -> None:
    """Show the smallest difference that R seeds can detect, and the seeds that a margin needs.

    Both numbers are for a power of 80 %.
    """
    _check(options)
    # Imported here, so that --help needs no scipy.
    from esper_ab.design.moderation import moderation, prior_df_of
    from esper_ab.design.power_tables import answer
    from esper_ab.design.power_text import power_text
    from esper_ab.design.scheme import PowerQuestion

    known_spread, margin = _known(options)
    positions = options["orders"]  # the flag overrides the experiment's plan; without either, they can matter
    if positions is None and options["experiment"] is not None:
        positions = load(options["experiment"]).history.design.positions_matter
    question = PowerQuestion(
        margin=options["margin"] or margin,
        alpha=options["alpha"],
        comparisons=options["comparisons"],
        positions_matter=positions is not False,
        futility=options["futility"],
        not_worse=True if options["claim"] == "not-worse" else msgspec.UNSET,
        prior_df=prior_df_of(moderation(options["variances"], options["comparisons"])) or msgspec.UNSET,
        largest=_largest_difference(options),
    )
    power_answer = answer(known_spread, options["seeds"], question)
    if options["json"]:
        click.echo(visible_json(msgspec.json.encode(power_answer)))
    else:
        click.echo(typeable(power_text(power_answer)))


def _check(options: Flags) -> None:
    """Raise UsageError unless the standard deviation has exactly one source and all numbers are in range."""
    sources = [name for name in ("sd_run", "calibration", "experiment") if options[name] is not None]
    if len(sources) != 1:
        raise UsageError("give one source of the spread: --sd-run SD, --calibration FILE or --experiment EXPERIMENT")
    if options["claim"] == "not-worse" and options["futility"]:
        raise UsageError(
            "--claim not-worse ends a comparison as soon as the claim holds, so stops for futility have no use; leave "
            f"out --futility {options['futility']:g}"
        )
    check_variances(options["variances"], options["comparisons"])
    size: tuple[Callable[[float], bool], str] = (lambda x: 0.0 < x < math.inf, "a positive number")
    kept_words = f"at least {LEAST_KEPT} and below 1, or 0 to turn it off"
    rules: dict[str, tuple[Callable[[float], bool], str]] = {
        "sd_run": size,
        "rho": (lambda x: -1.0 <= x < 1.0, "at least -1 and below 1"),
        "margin": size,
        "alpha": (lambda x: 0.0 < x < 0.5, "above 0 and below 0.5"),
        "futility": (lambda x: x == 0.0 or LEAST_KEPT <= x < 1.0, kept_words),
    }
    for name, (is_valid, valid_words) in rules.items():
        if options[name] is not None and not is_valid(options[name]):
            raise UsageError(f"--{name.replace('_', '-')} {options[name]:g}: it must be {valid_words}")
    if options["sd_run"] is not None and options["margin"] is None:
        raise UsageError("--sd-run needs --margin, the smallest difference worth acting on, in the same unit")


def _largest_difference(options: Flags) -> float | UnsetType:
    """Return the largest possible difference of two outcomes if claims must hold for any shape."""
    ends = read_range(options["outcome_range"])
    if options["shape"] != "any":
        if options["outcome_range"]:
            raise UsageError(SettingName("outcome_range"), " needs ", SettingName("shape", "any"))
        return UNSET
    if not options["outcome_range"] and options["sd_run"] is None:
        ends = _declared_range(options)
    low, high = ends
    if low is None or high is None:
        raise UsageError(
            SettingName("shape", "any"),
            " needs both ends of the range of possible outcomes: ",
            SettingName("outcome_range", "LOW..HIGH"),
        )
    return high - low


def _declared_range(options: Flags) -> tuple[float | None, float | None]:
    """Return the range of outcomes that a calibration or an experiment declares; the worst one may be chance."""
    from esper_ab.design.calibration_file import load_calibration  # with scipy

    if options["calibration"] is not None:
        outcome = load_calibration(options["calibration"]).outcome
        return outcome.low, outcome.high
    design = load(options["experiment"]).history.design
    if design.outcome.sign > 0.0:
        return design.worst, design.outcome.high
    return design.outcome.low, design.worst


def _known(options: Flags) -> tuple[Known, float]:
    """Return the spread and the margin from the source that is named by the flags."""
    # Imported here, so that --help needs no scipy.
    from esper_ab.analysis.pair_spread import known_from_pairs
    from esper_ab.analysis.window_spread import changes_of_groups, windows_of_pairs
    from esper_ab.design.calibration_file import load_calibration
    from esper_ab.design.power_tables import Known, check_varied

    rho = options["rho"]
    if options["sd_run"] is not None:
        return Known(source="given", sd=options["sd_run"], rho=rho), options["margin"]
    if options["calibration"] is not None:
        calibration = load_calibration(options["calibration"])
        spread = calibration.spread
        known_spread = Known(
            source=f"{spread.runs} runs of {calibration.subject} in {options['calibration']}",
            sd=spread.sd,
            df=spread.runs - 1,
            rho=rho,
            noise=calibration.noise,
            unit=calibration.outcome.apart,
            windows=calibration.windows,
            group_changes=calibration.group_changes,
            shape_risk=calibration.shape_risk,
        )
        return check_varied(known_spread), calibration.margin
    history = load(options["experiment"]).history
    known_spread = known_from_pairs(history, str(options["experiment"]))
    windows = windows_of_pairs(history)
    if rho is not None:
        known_spread = msgspec.structs.replace(known_spread, rho=rho, sd_pairs=None, df_pairs=None)
        windows = tuple(msgspec.structs.replace(window, sd_pairs=None) for window in windows)
    known_spread = msgspec.structs.replace(known_spread, windows=windows, group_changes=changes_of_groups(history))
    return known_spread, history.design.margin
