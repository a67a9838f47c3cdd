"""`python -m esper_ab.launch`, also `esper-ab launch`: from flags to a finished comparison. Decides nothing itself.

Its first imports are few: `--help` loads nothing heavy, and spawned workers import this module as their main one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.exit_status import EPILOG, invoke

if TYPE_CHECKING:
    from esper_ab.config import Experiment
    from esper_ab.contracts.machine import Machine
    from esper_ab.launchers import Launcher
    from esper_ab.parse import Catalogue, FileSettings
    from esper_ab.plan import Plan

# Flag -> key of the experiment. Their defaults are those of esper_ab/config.py: a flag not given sets nothing.
_FLAG_KEYS = {"threads": "arithmetic.threads"}
_LIST_FLAGS = {"slots": "--slots early late", "devices": "--devices cpu:0 cpu:1"}  # with an example
_NOT_SETTINGS = (
    "groups", "group", "set", "config", "out", "dry_run", "json", "quiet", "launcher", "no_telemetry", "replicates",
    "max", "looks", "untested", "no_early_stop", "exam",
)  # or not as they stand


def gather_lists(args: Sequence[str]) -> list[str]:
    """`--slots early mid late` as `--slots early,mid,late`, which is what click can read."""
    gathered: list[str] = []
    collecting = False
    for arg in args:
        if collecting and not arg.startswith("-"):
            gathered[-1] += ("," if gathered[-1] else "") + arg.strip(",")
            continue
        collecting = arg in {f"--{flag}" for flag in _LIST_FLAGS}
        gathered.append(arg)
        if collecting:
            gathered.append("")
    return gathered


class _Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, gather_lists(args))


def _request(options: dict[str, Any]) -> Any:
    """The flags that say what to run, as parse.Request."""
    from esper_ab.assignments import split_commas
    from esper_ab.errors import UsageError
    from esper_ab.parse import Request

    flags: dict[str, object] = {
        _FLAG_KEYS.get(flag, flag): value
        for flag, value in options.items()
        if flag not in _NOT_SETTINGS and value is not None and value is not False
    }
    for flag in _LIST_FLAGS:
        if flag in flags:
            flags[flag] = [piece for piece in str(flags[flag]).split(",") if piece]
            if not flags[flag]:
                example = _LIST_FLAGS[flag]
                raise UsageError(f"--{flag}: names are missing, as in {example}; leave it out for all there are")
    if options["no_telemetry"]:
        flags["telemetry"] = False
    if options["no_early_stop"]:
        flags["early_stop"] = False
    if options["untested"] is not None:
        flags["untested"] = split_commas(options["untested"], "--untested")
    if options["looks"] is not None:
        flags["looks"] = [_whole(piece, "--looks") for piece in split_commas(options["looks"], "--looks")]
    flags |= _replicates(options["replicates"], options["max"])
    groups = options["groups"]
    return Request(
        groups=tuple(split_commas(groups, "--groups")) if groups is not None else (),
        group=options["group"],
        assignments=options["set"],
        flags=flags,
    )


def _asked(options: dict[str, Any], file: FileSettings, catalogue: Catalogue) -> Experiment:
    """The experiment as flags and file say; an exam has its own groups unless others are named."""
    from esper_ab import exam
    from esper_ab.parse import parse

    request = _request(options)
    named = request.groups or request.group or file.groups or file.tables
    if options["exam"] and not named:
        request = replace(request, groups=exam.GROUPS)
    asked = parse(request, file, catalogue)
    return exam.as_exam(asked) if options["exam"] or asked.exam else asked


def _whole(text: str, origin: str) -> int:
    from esper_ab.errors import UsageError

    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{origin}: expected a whole number, not {text!r}")
    return int(text)


def _replicates(replicates: str | None, most: int | None) -> dict[str, object]:
    """`--replicates N`; `auto --max N`: looks on the way to N; `auto`: no maximum."""
    from esper_ab.errors import UsageError

    if replicates is None or replicates != "auto":
        if most is not None:
            raise UsageError("--max goes with --replicates auto; --replicates N is a maximum already")
        return {} if replicates is None else {"replicates": _whole(replicates, "--replicates")}
    return {"open_ended": True} if most is None else {"replicates": most}


def _planned(options: dict[str, Any]) -> tuple[Plan, Machine, Path]:
    """Everything that can be refused is refused here, before anything starts or is written."""
    import msgspec

    from esper_ab.boundary_cache import calibrate
    from esper_ab.contracts import catalog
    from esper_ab.control.preflight import check_run_dir, examine, expected_bytes
    from esper_ab.parse import Catalogue, FileSettings, read_toml
    from esper_ab.plan import make_plan
    from esper_ab.resolve import questions, resolve
    from esper_ab.run_directory import check_name

    catalogue = Catalogue(rewards=catalog.names("workers.rewards"), controllers=catalog.names("workers.controllers"))
    file = read_toml(options["config"]) if options["config"] else FileSettings()
    asked = _asked(options, file, catalogue)
    name = asked.name or _default_name(asked)
    check_name(name)
    run_dir = options["out"] / name
    env_episodes = len(asked.groups) * asked.replicates * asked.n_envs * (asked.episodes + 2 * asked.eval_episodes)
    check_run_dir(run_dir, expected_bytes(env_episodes))
    machine = examine(questions(asked))
    experiment = resolve(msgspec.structs.replace(asked, name=name), machine)
    return make_plan(experiment, machine, calibrate), machine, run_dir


def _default_name(experiment: Experiment) -> str:
    return f"{experiment.task}-{datetime.now(UTC).astimezone():%Y%m%d-%H%M%S}"


def _run(plan: Plan, run_dir: Path, options: dict[str, Any]) -> None:
    """Train, evaluate and journal; the live view is one observer among others."""
    from esper_ab.control import conduct

    with ExitStack() as stack:
        observers = []
        if not (options["quiet"] or options["json"]):
            from rich.console import Console

            from esper_ab.live.terminal import LiveView

            observers.append(stack.enter_context(LiveView(plan, Console())))
        conduct.run(plan, run_dir, _launcher(options["launcher"]), observers)


def _launcher(name: str) -> Launcher:
    if name == "inline":
        from esper_ab.launchers.inline import InlineLauncher

        return InlineLauncher()
    from esper_ab.launchers.local import LocalLauncher

    return LocalLauncher()


def _conclude(run_dir: Path, as_json: bool) -> None:
    from esper_ab.report.build import build_report, render_report

    paths = build_report(run_dir)
    click.echo(paths.verdict.read_text(encoding="utf-8").strip() if as_json else render_report(paths))


@click.command(
    cls=_Command, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
@click.option("--groups", metavar="A,B,…", help="Reward modes or controllers; NAME=MODE gives another name. "
              "[default: shaped,simplified]")
@click.option("--group", multiple=True, metavar="NAME:KEY=VALUE,…", help="Alter NAME, or create it. Repeatable.")
@click.option("--set", "set", multiple=True, metavar="KEY=VALUE", help="Any setting, for all groups. Repeatable.")
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE.toml", help="The same settings; flags win.")
@click.option("--task", metavar="NAME", help="What hosts learn. [default: digits]")
@click.option("--data-dir", metavar="DIR", help="Where a task's data is, if it does not ship.")
@click.option("--slots", metavar="A B …", help="Slots that may grow, in network order. [default: all]")
@click.option("--episodes", type=int, metavar="N", help="Training episodes per run.")
@click.option("--steps", type=int, metavar="N", help="Host epochs, and decisions, per episode.")
@click.option("--n-envs", type=int, metavar="N", help="Environments per run.")
@click.option("--replicates", metavar="N|auto", help="Repetitions; 6 are the least that can carry a verdict. auto: as "
              "many as it takes, up to --max.")
@click.option("--max", type=int, metavar="N", help="With --replicates auto: the most.")
@click.option("--looks", metavar="N,N,…", help="Replicates after which it is looked. [default: 6,10 of 10; 6,10,14,20 "
              "of 20; one below 10]")
@click.option("--no-early-stop", is_flag=True, help="Go on with a comparison that is decided.")
@click.option("--control", metavar="NAME", help="Compare the others with this group. [default: all pairs]")
@click.option("--untested", metavar="A,B,…", help="Groups that are measured and in no comparison.")
@click.option("--exam", is_flag=True, help="The reward-efficiency exam: heuristic, random and wait against shaped, "
              "simplified and sparse, to an outcome.")
@click.option("--endpoint", metavar="evaluation|last-tenth|curve-mean", help="What one run comes to.")
@click.option("--test", metavar="t|rank", help="rank: for tasks where more than one run in ten collapses.")
@click.option("--alpha", type=float, metavar="P", help="Error rate of the whole experiment. [default: 0.05]")
@click.option("--eval-episodes", type=int, metavar="N", help="Evaluation episodes of the trained policy.")
@click.option("--margin", type=float, metavar="POINTS", help="The smallest difference worth acting on. [default: 2]")
@click.option("--rng-seed", type=int, metavar="N", help="Root of all randomness.")
@click.option("--unpaired", is_flag=True, help="Own randomness per group, for calibration.")
@click.option("--devices", metavar="A B …", help="cuda:0, cpu:1, or cuda, cpu for all. [default: all GPUs, or cores]")
@click.option("--devices-per-run", type=int, metavar="N", help="Devices of one run.")
@click.option("--placement", metavar="spread|share|alternate|sequence", help="One run per device; or on one device a "
              "block's runs side by side, in turn by episode, or one whole run after the other.")
@click.option("--order", metavar="balanced|fixed|shuffled", help="Which group takes which lane and place in the start "
              "order of a block.")
@click.option("--sync", metavar="lockstep|independent", help="Whether runs wait for one another after every episode.")
@click.option("--threads", type=int, metavar="N", help="CPU threads per worker, the same for all.")
@click.option("--no-telemetry", is_flag=True, help="Do not record the life of every seed; no result depends on it.")
@click.option("--launcher", type=click.Choice(["local", "inline"]), default="local", help="Processes, or threads here.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, metavar="DIR",
              help="Where run directories go.")
@click.option("--name", metavar="NAME", help="Name of the run directory. [default: task and time]")
@click.option("--dry-run", is_flag=True, help="Print the plan and stop.")
@click.option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout.")
@click.option("--quiet", is_flag=True, help="No live view.")
def command(**options: Any) -> None:
    """Train one policy per group and replicate, all groups at the same time on paired randomness, and compare them."""
    import msgspec

    from esper_ab.estimate import estimate
    from esper_ab.plan_text import plan_text
    from esper_ab.run_directory import make_run_directory

    plan, machine, run_dir = _planned(options)
    cost = estimate(plan, machine)
    if options["json"] and options["dry_run"]:
        click.echo(msgspec.json.encode({"plan": plan, "estimate": cost, "run_dir": str(run_dir)}))
    elif not options["json"]:
        click.echo(plan_text(plan, cost, run_dir))
    if options["dry_run"]:
        return
    make_run_directory(run_dir, plan, machine)
    _run(plan, run_dir, options)
    _conclude(run_dir, options["json"])


def main() -> int:
    """Entry of `python -m esper_ab.launch`."""
    return invoke(command, sys.argv[1:], "python -m esper_ab.launch")


if __name__ == "__main__":
    sys.exit(main())
