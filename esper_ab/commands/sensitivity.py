"""`esper-ab sensitivity`: the same comparison at several settings, because a mode that wins at one may only be better
tuned there. One experiment for each point, in one parent folder; called again with the same parent, it goes on.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from esper_ab.analysis.sensitivity import Point, PointComparison, Sensitivity, summarise, summary_text
from esper_ab.commands import _completing as completing
from esper_ab.commands._exit_status import epilog
from esper_ab.commands._options import ExperimentCommand, experiment_options
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Machine, Questions
from esper_ab.control.preflight import examine
from esper_ab.execution.experiment import (
    PlannedExperiment,
    carry_out,
    check_new,
    choose_name,
    examine_machine,
    make_launcher,
    plan_on,
)
from esper_ab.journal.file import JOURNAL_NAME, Journal
from esper_ab.journal.load import load
from esper_ab.report.build import build_report
from esper_ab.settings.assignments import SHORT, split_commas
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.flags import parse_flags

_Point = tuple[dict[str, str], PlannedExperiment]  # a setting, and what will be run with it

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 110  # a folder's name has at most 128 characters; one that is set aside gets longer
_HASH = 8  # hexadecimal digits


@click.command(
    cls=ExperimentCommand,
    epilog=epilog(
        "esper-ab sensitivity --lr 3e-4,1e-3 --episodes 3,6 --name horizon",
        "esper-ab sensitivity --groups shaped,wait --over n_envs=4,8 --dry-run",
    ),
)
@click.option("--episodes", metavar="N,N,…", help="Training episodes per run: one point for each.")
@click.option("--lr", metavar="X,X,…", help="Learning rate of PPO: one point for each, with each of the others.")
@click.option("--over", shell_complete=completing.assignment, multiple=True, metavar="KEY=V1,V2,…",
              help="Any other setting. Repeatable.")
@experiment_options(without=("episodes",))
def command(episodes: str | None, lr: str | None, over: tuple[str, ...], **options: Any) -> None:
    """Repeat a comparison at every combination of settings, each an experiment of its own, side by side."""
    axes = grid_axes(episodes, lr, over)
    asked = [(setting, _parse(options, setting)) for setting in combine_settings(axes)]
    parent = options["out"] / choose_name(asked[0][1], "sensitivity-{task}-{time}")
    once = functools.cache(examine)
    points = [(setting, _plan(one, parent / name_folder(setting), once)) for setting, one in asked]
    to_run = [point for _, point in points if not _finished(point)]
    for point in to_run:
        if not point.run_dir.exists():
            check_new(point.asked, point.run_dir)
    if options["dry_run"]:
        _preview(parent, points, as_json=options["json"])
        return
    if not options["json"]:
        click.echo(f"{parent}: {len(points)} points, {len(points) - len(to_run)} finished already")
    for point in to_run:
        if not options["json"]:
            click.echo(f"\n{point.run_dir.name}: {_size(point.asked)}")
        _run(point, options)
        _write(parent, points)
    found = _write(parent, points)
    _print(parent, found, as_json=options["json"])


def grid_axes(episodes: str | None, lr: str | None, over: Sequence[str]) -> dict[str, list[str]]:
    """The values of each key, as typed; UsageError for a key given twice, and unless one key has two values."""
    texts = [(f"episodes={episodes}", "--episodes")] if episodes is not None else []
    texts += [(f"ppo.lr={lr}", "--lr")] if lr is not None else []
    texts += [(text, f"--over {text}") for text in over]
    axes: dict[str, list[str]] = {}
    for text, origin in texts:
        key, equals, values = text.partition("=")
        pieces = split_commas(values, origin)
        if not equals or not all(pieces) or len(set(pieces)) < len(pieces):
            raise UsageError(f"{origin}: expected different values between commas, as in --over ppo.epochs=2,4")
        key = SHORT.get(key.strip(), key.strip())
        if key in axes:
            raise UsageError(f"{origin}: {key} is varied twice")
        axes[key] = pieces
    if sum(len(values) - 1 for values in axes.values()) < 1:
        raise UsageError("nothing is varied: name two values at least, as in --lr 3e-4,1e-3 or --episodes 3,6")
    return axes


def combine_settings(axes: dict[str, list[str]]) -> list[dict[str, str]]:
    """All combinations of the values in `axes`, the last key varying fastest."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _parse(options: dict[str, Any], setting: dict[str, str]) -> AskedExperiment:
    own = tuple(f"{key}={value}" for key, value in setting.items())
    return parse_flags({**options, "set": (*options["set"], *own)})


def _plan(asked: AskedExperiment, run_dir: Path, examine: Callable[[Questions], Machine]) -> PlannedExperiment:
    machine = examine_machine(asked, examine)
    plan = plan_on(machine, asked, run_dir.name)
    return PlannedExperiment(asked=asked, machine=machine, plan=plan, run_dir=run_dir)


def _size(asked: AskedExperiment) -> str:
    return f"{len(asked.groups)} groups x {asked.replicates} replicates"


def name_folder(setting: dict[str, str]) -> str:
    """Name of a point's folder: its settings, with a hash where they cannot be in a name; other points do not count."""
    told = "_".join(f"{key}-{value}" for key, value in setting.items())
    name = _NOT_IN_A_NAME.sub("-", told)
    if name == told and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(told.encode()).hexdigest()[:_HASH]
    return f"{name[: _LONGEST_NAME - _HASH - 1]}-{digest}"


def _finished(point: PlannedExperiment) -> bool:
    """Whether the point has been run to its end; UsageError when its folder holds another experiment."""
    if not (point.run_dir / JOURNAL_NAME).exists():
        return False
    history = load(point.run_dir).history
    if history.plan.digest != point.plan.digest:
        raise UsageError(f"{point.run_dir} holds another experiment; choose another --name, or the settings it had")
    return history.ended is not None and history.ended.status == "finished"


def _run(point: PlannedExperiment, options: dict[str, Any]) -> None:
    """Run one point and write its report; what an interrupted attempt left is kept under another name."""
    if point.run_dir.exists():
        _set_aside(point.run_dir)
    launcher = make_launcher(options["launcher"], options["transport"])
    carry_out(point, launcher, watched=not (options["quiet"] or options["json"]))
    build_report(point.run_dir)


def _set_aside(run_dir: Path) -> None:
    """Rename a folder that an interrupted attempt left; UsageError when another process is at work in it."""
    if (run_dir / JOURNAL_NAME).exists():
        journal, _ = Journal.reopen(run_dir)
        journal.close()
    kept = (run_dir.with_name(f"{run_dir.name}.unfinished-{number}") for number in itertools.count(1))
    run_dir.rename(next(path for path in kept if not path.exists()))


def _write(parent: Path, points: Sequence[_Point]) -> Sensitivity:
    """Write sensitivity.json and summary.txt about all points, those to come among them."""
    def told(setting: dict[str, str], point: PlannedExperiment) -> Point:
        said = _said(point.run_dir) if _finished(point) else ()
        return Point(setting=setting, run=point.run_dir.name, digest=point.plan.digest, comparisons=said)

    found = summarise([told(*point) for point in points], points[0][1].plan.experiment.alpha)
    (parent / "sensitivity.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    (parent / "summary.txt").write_text(summary_text(found) + "\n", encoding="utf-8")
    return found


def _said(run_dir: Path) -> tuple[PointComparison, ...]:
    """What each comparison of a finished point says."""
    from esper_ab.analysis.analyse import analyse  # with scipy: --help and --dry-run are fast

    return tuple(
        PointComparison(
            a=one.question.a,
            b=one.question.b,
            verdict=str(one.verdict),
            pairs=len(one.pairs),
            mean=one.effect.mean if one.effect else None,
            low=one.low,
            high=one.high,
        )
        for one in analyse(load(run_dir).history).comparisons
    )


def _preview(parent: Path, points: Sequence[_Point], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"setting": setting, "run": point.run_dir.name, "finished": _finished(point), "plan": point.plan}
            for setting, point in points
        ]
        click.echo(msgspec.json.encode({"parent": str(parent), "points": rows}))
        return
    click.echo(f"{parent}: {len(points)} points")
    for setting, point in points:
        told = ", ".join(f"{key}={value}" for key, value in setting.items())
        done = ", finished" if _finished(point) else ""
        click.echo(f"  {point.run_dir.name}: {told}; {_size(point.asked)}{done}")


def _print(parent: Path, found: Sensitivity, *, as_json: bool) -> None:
    if as_json:
        click.echo((parent / "sensitivity.json").read_text(encoding="utf-8").strip())
    else:
        click.echo(f"\n{summary_text(found)}\n\nreports: {parent}/*/report.html")
