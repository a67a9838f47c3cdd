"""`esper-ab calibrate`: one condition against itself (A/A), to see what chance alone does on this task and machine.

Imports little: everything heavy comes when it is called.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands import _completing as completing
from esper_ab.commands._examples import epilog
from esper_ab.commands._options import ExperimentCommand, experiment_options
from esper_ab.commands.power import RHO, ROWS, Known, power_tables, table_lines
from esper_ab.execution.experiment import (
    PlannedExperiment,
    carry_out,
    make_directory,
    make_launcher,
    plan_experiment,
    plan_on,
)

if TYPE_CHECKING:
    from esper_ab.design.calibration_file import Calibration
    from esper_ab.design.false_claims import FalseClaims
    from esper_ab.journal.fold import History, RunHistory
    from esper_ab.launchers import Launcher

_WIDTH = 100
_LEAST_RUNS = 4
_DETERMINISM_EPISODES = 2  # the second one follows an update of the policy
_OWN = (
    "groups", "group", "replicates", "max", "looks", "no_early_stop", "control", "untested", "exam", "unpaired",
    "order",
)  # decided here


@click.command(
    "calibrate",
    cls=ExperimentCommand,
    epilog=epilog(
        "esper-ab calibrate --mode shaped --runs 20",
        "esper-ab calibrate --mode wait --runs 4 --episodes 1 --dry-run",
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.option("--mode", shell_complete=completing.mode, default="shaped", show_default=True, metavar="NAME",
              help="The condition: a reward mode or a controller.")
@click.option("--runs", type=int, default=20, show_default=True, metavar="N", help="How often it is trained, each time "
              "on its own randomness.")
@click.option("--replicates", type=int, default=10, show_default=True, metavar="R", help="Of the experiment planned "
              "later: the rules are tried for it.")
@experiment_options(without=_OWN)
def command(mode: str, runs: int, replicates: int, **options: Any) -> None:
    """Train one condition again and again, and show how often each rule would find a difference in it."""
    planned = _plan(mode, runs, options)
    _announce(planned, options)
    if options["dry_run"]:
        return
    watched = not (options["quiet"] or options["json"])
    launcher = make_launcher(options["launcher"], options["transport"])
    planned = make_directory(planned, launcher)
    carry_out(planned, launcher, watched=watched)
    deterministic = _try_determinism(planned, launcher)
    found = _write(planned.run_dir, replicates, deterministic)
    if options["json"]:
        click.echo((planned.run_dir / "calibration.json").read_text(encoding="utf-8").strip())
    else:
        click.echo(f"{calibration_text(found)}\ncalibration: {planned.run_dir / 'calibration.json'}")


def _announce(planned: PlannedExperiment, options: dict[str, Any]) -> None:
    """Print the plan, as text before it is carried out, or as JSON when it is all that was asked for."""
    from esper_ab.execution.experiment import encode_plan, format_plan

    if not options["json"]:
        click.echo(format_plan(planned))
    elif options["dry_run"]:
        click.echo(encode_plan(planned))


def _plan(mode: str, runs: int, options: dict[str, Any]) -> PlannedExperiment:
    """Plan two groups with equal settings and unpaired randomness: independent runs that change lanes as in a plan."""
    from esper_ab.contracts.errors import UsageError
    from esper_ab.settings.flags import parse_flags

    if runs < _LEAST_RUNS or runs % 2:
        raise UsageError(f"--runs {runs}: an even number, {_LEAST_RUNS} at least, as in --runs 20")
    if "," in mode or "=" in mode:
        raise UsageError(f"--mode {mode}: one reward mode or controller, as in --mode shaped")
    pairs = str(runs // 2)
    own = {"groups": f"a={mode},b={mode}", "replicates": pairs, "looks": pairs, "no_early_stop": True, "unpaired": True}
    return plan_experiment(parse_flags({**options, **own}), options["out"], "calibration-{task}-{time}")


def _try_determinism(planned: PlannedExperiment, launcher: Launcher) -> bool:
    """Whether both runs of a small paired replicate, each in its own lane, give the same records."""
    import msgspec

    from esper_ab.analysis.pairs import pairs_of, same_records
    from esper_ab.journal.load import load

    small = msgspec.structs.replace(
        planned.asked,
        name="determinism",
        unpaired=False,
        replicates=1,
        looks=(),
        episodes=min(planned.asked.episodes, _DETERMINISM_EPISODES),
        eval_episodes=1,
    )
    run_dir, machine = planned.run_dir / small.name, planned.machine
    plan = plan_on(machine, small, small.name)
    carry_out(PlannedExperiment(asked=small, machine=machine, plan=plan, run_dir=run_dir), launcher, watched=False)
    history = load(run_dir).history
    contrast = history.design.comparisons[0]
    return same_records(history, contrast, pairs_of(history, contrast))


def _write(run_dir: Path, replicates: int, deterministic: bool) -> Calibration:
    """Analyse the runs of `run_dir` and write calibration.json there."""
    import msgspec

    from esper_ab.design.calibration_file import FILE_NAME
    from esper_ab.journal.load import load

    found = calibration_of(load(run_dir).history, replicates, deterministic=deterministic)
    (run_dir / FILE_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return found


def calibration_of(history: History, replicates: int, *, deterministic: bool) -> Calibration:
    """What the finished runs of an A/A experiment say; draws only from a generator of the plan's digest."""
    import numpy as np

    from esper_ab.contracts.errors import UsageError
    from esper_ab.design.boundary_cache import calibrate
    from esper_ab.design.calibration import (
        autocorrelation,
        factor_effects,
        intraclass_correlation,
        last_episodes,
        spread,
    )
    from esper_ab.design.calibration_file import SCHEMA, Calibration, conditions_of
    from esper_ab.design.design import default_looks
    from esper_ab.design.false_claims import false_claims
    from esper_ab.design.power import PowerQuestion
    from esper_ab.journal.outcomes import endpoint, held_out_accuracy
    from esper_ab.settings.differences import flat
    from esper_ab.stats.least_pairs import LEAST_PAIRS

    plan, experiment = history.plan, history.plan.experiment
    runs = [run for run in history.runs.values() if endpoint(run, experiment.endpoint) is not None]
    if len(runs) < _LEAST_RUNS:
        raise UsageError(f"only {len(runs)} runs have an endpoint; a calibration needs {_LEAST_RUNS} at least")
    endpoints = np.array([endpoint(run, experiment.endpoint) for run in runs], dtype=np.float64)
    curves = np.array([[held_out_accuracy(record) for record in run.curve()] for run in runs], dtype=np.float64)
    per_group = min(replicates, len(runs) // 2)
    looks = default_looks(per_group)
    nominal = calibrate([(0, 1)] * per_group, 1, looks, (experiment.alpha,))[0] if per_group >= LEAST_PAIRS else ()
    rng = np.random.Generator(np.random.Philox(key=int(plan.digest[:32], 16)))
    whole = spread(endpoints)
    known = Known(source="these runs", sd=whole.sd, df=whole.runs - 1)
    group = experiment.groups[0]
    learns = group.settings.controller.name == "ppo"
    return Calibration(
        schema=SCHEMA,
        mode=group.settings.reward.mode if learns else group.settings.controller.name,
        conditions=conditions_of(experiment),
        settings=flat(group),
        experiment=plan.digest,
        versions=history.started.versions,
        code=history.started.code,
        spread=whole,
        autocorrelation=autocorrelation(curves),
        intraclass=intraclass_correlation(last_episodes(curves)),
        effects=factor_effects(endpoints, _factors(history, runs)),
        deterministic=deterministic,
        planned=replicates,
        replicates=per_group,
        claims=false_claims(curves, endpoints, per_group, tuple(zip(looks, nominal, strict=False)), rng),
        margin=experiment.margin,
        power=power_tables(known, RHO, ROWS, PowerQuestion(margin=experiment.margin, alpha=experiment.alpha))
        if known.sd > 0.0
        else (),
    )


def _factors(history: History, runs: list[RunHistory]) -> dict[str, list[str]]:
    """Device and place in the start order of every run."""
    devices = {lane.name: "+".join(lane.devices) for lane in history.plan.lanes}
    places = {
        spec.ref.run: str(place + 1) for block in history.blocks for place, spec in enumerate(block.runs)
    }
    return {
        "device": [devices[run.ref.device] for run in runs],
        "start order": [places[run.ref.run] for run in runs],
    }


def calibration_text(found: Calibration) -> str:
    """Everything that was found, as the command prints it."""
    s = found.spread
    lines = [
        found.sentence,
        f"Mean {s.mean:.1f} %; task {found.conditions['task']}, endpoint {found.conditions['endpoint']}.",
        f"{_curve_sentence(found)}.",
        "",
        "Device and start order (least squares, 95 % intervals, points):",
        *_effect_lines(found),
        "",
        "Determinism: two lanes on the same randomness gave the same records."
        if found.deterministic
        else "Determinism: two lanes on the same randomness gave DIFFERENT records: pairs share less than they should.",
        "",
        f"How often each rule finds a difference where there is none, with these runs dealt at random into two groups "
        f"of {found.replicates}{_fewer(found)}; 5 % is what a rule promises:",
        *(_claim_line(claims, found.replicates) for claims in found.claims),
    ]
    if found.power:
        lines += ["", "The pair correlation rho is not known from one mode; an experiment shows its own.", ""]
        lines += table_lines(found.power)
    return "\n".join(
        textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False) if line[:1].isalpha() else line
        for line in lines
    )


def _fewer(found: Calibration) -> str:
    if found.replicates == found.planned:
        return ""
    return f" ({found.planned} are planned, but need {2 * found.planned} runs)"


def _curve_sentence(found: Calibration) -> str:
    told = []
    if found.autocorrelation is None:
        told.append("Autocorrelation of training accuracy: needs four episodes that vary")
    else:
        told.append(f"Autocorrelation of training accuracy at lag 1: {found.autocorrelation:.2f}")
    icc = found.intraclass
    if icc is None:
        told.append("intraclass correlation: not defined here")
    else:
        told.append(
            f"intraclass correlation of the last {icc.episodes} episodes: {icc.r:.2f} ({icc.low:.2f} to {icc.high:.2f})"
        )
    return "; ".join(told)


def _effect_lines(found: Calibration) -> list[str]:
    if not found.effects:
        return ["  one device, one place: nothing to compare"]
    lines = []
    for effect in found.effects:
        lines += [
            f"  {effect.factor} {level.level} against {level.against}: {level.mean:+.2f} "
            f"[{level.low:+.2f}, {level.high:+.2f}]"
            for level in effect.levels
        ] or [f"  {effect.factor}: too few runs"]
    if any(effect.aliased for effect in found.effects):
        lines.append("  Device and start order go together in this plan: each is estimated as if it were alone.")
    return lines


def _claim_line(claims: FalseClaims, per_group: int) -> str:
    size = "" if claims.runs_per_group == per_group else f" ({claims.runs_per_group} run per group)"
    return f"  {claims.rate:6.1%}  {claims.rule}{size}"
