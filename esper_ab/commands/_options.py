"""The flags that say what to run, shared by every command that trains, as click decorators. Light."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from esper_ab.commands import _completing as completing
from esper_ab.contracts import catalog

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

ARGUMENTS = "esper_ab.arguments"
_LIST_FLAGS = ("slots", "devices")  # their values may be several words

_COMPLETED = {
    "--groups": completing.groups,
    "--group": completing.group,
    "--set": completing.assignment,
    "--task": completing.tasks,
    "--control": completing.named_groups,
    "--untested": completing.named_groups,
    "--slots": completing.slots,
    "--devices": completing.devices,
} | dict.fromkeys(("--endpoint", "--test", "--placement", "--order", "--sync", "--amp"), completing.choice)


def _option(name: str, *more: str, **how: Any) -> Decorator:
    """click's, with what a shell may offer as its value."""
    return click.option(name, *more, shell_complete=_COMPLETED.get(name), **how)


_OPTIONS: dict[str, Decorator] = {
    "groups": _option("--groups", metavar="A,B,…", help="Reward modes or controllers; NAME=MODE gives another "
                           "name. [default: shaped,simplified]"),
    "group": _option("--group", multiple=True, metavar="NAME:KEY=VALUE,…", help="Alter NAME, or create it. "
                          "Repeatable."),
    "set": _option("--set", "set", multiple=True, metavar="KEY=VALUE", help="Any setting, for all groups. "
                        "Repeatable."),
    "config": _option("--config", type=click.Path(path_type=Path), metavar="FILE.toml", help="The same settings; "
                           "flags win."),
    "task": _option("--task", metavar="NAME", help="What hosts learn. [default: digits]"),
    "data_dir": _option("--data-dir", metavar="DIR", help="Where a task's data is, if it does not ship."),
    "slots": _option("--slots", metavar="A B …", help="Slots that may grow, in network order. [default: all]"),
    "episodes": _option("--episodes", type=int, metavar="N", help="Training episodes per run."),
    "steps": _option("--steps", type=int, metavar="N", help="Host epochs, and decisions, per episode."),
    "n_envs": _option("--n-envs", type=int, metavar="N", help="Environments per run."),
    "replicates": _option("--replicates", metavar="N|auto", help="Repetitions; 6 are the least that can carry a "
                               "verdict. auto: as many as it takes, up to --max."),
    "max": _option("--max", type=int, metavar="N", help="With --replicates auto: the most."),
    "looks": _option("--looks", metavar="N,N,…", help="Replicates at the interim looks. [default: 6,10 of 10; "
                          "6,10,14,20 of 20; one below 10]"),
    "no_early_stop": _option("--no-early-stop", is_flag=True, help="Go on with a comparison that is decided."),
    "control": _option("--control", metavar="NAME", help="Compare the others with this group. "
                            "[default: all pairs]"),
    "untested": _option("--untested", metavar="A,B,…", help="Groups that are measured and in no comparison."),
    "exam": _option("--exam", is_flag=True, help="The reward-efficiency exam: heuristic, random and wait against "
                         "shaped, simplified and sparse, to an outcome."),
    "endpoint": _option("--endpoint", metavar="evaluation|last-tenth|curve-mean", help="What one run comes to."),
    "test": _option("--test", metavar="t|rank", help="rank: for tasks where more than one run in ten collapses."),
    "alpha": _option("--alpha", type=float, metavar="P", help="Error rate of the whole experiment. "
                          "[default: 0.05]"),
    "eval_episodes": _option("--eval-episodes", type=int, metavar="N", help="Evaluation episodes of the trained "
                                  "policy."),
    "margin": _option("--margin", type=float, metavar="POINTS", help="The smallest difference worth acting on. "
                           "[default: 2]"),
    "rng_seed": _option("--rng-seed", type=int, metavar="N", help="Root of all randomness."),
    "unpaired": _option("--unpaired", is_flag=True, help="Own randomness per group, for calibration."),
    "devices": _option("--devices", metavar="A B …", help="cuda:0, cpu:1, or cuda, cpu for all. [default: all "
                            "GPUs, or cores]"),
    "devices_per_run": _option("--devices-per-run", type=int, metavar="N", help="Devices of one run."),
    "max_parallel": _option("--max-parallel", type=click.IntRange(min=1), metavar="N", help="Runs that train at the "
                                 "same time, at most."),
    "placement": _option("--placement", metavar="spread|share|alternate|sequence", help="One run per device; or "
                              "on one device a block's runs side by side, in turn by episode, or one whole run after "
                              "the other."),
    "order": _option("--order", metavar="balanced|fixed|shuffled", help="Which group takes which lane and place "
                          "in the start order of a block."),
    "sync": _option("--sync", metavar="lockstep|independent", help="Whether runs wait for one another after every "
                         "episode."),
    "share_observation_norm": _option("--share-observation-norm", is_flag=True, help="The learners of a "
                                           "replicate normalise observations by the moments of all of them; couples "
                                           "the groups."),
    "threads": _option("--threads", type=int, metavar="N", help="CPU threads per worker, the same for all."),
    "amp": _option("--amp", metavar="off|bf16|fp16|auto", help="Precision of host training, for all groups; auto: "
                        "by the devices. [default: off]"),
    "deterministic": _option("--deterministic/--no-deterministic", default=None, help="Only kernels that give the "
                                  "same bits every time. [default: --deterministic]"),
    "no_telemetry": _option("--no-telemetry", is_flag=True, help="Do not record the life of every seed; no result "
                                 "depends on it."),
    "launcher": _option("--launcher", type=click.Choice(catalog.names("esper_ab.launchers")), default="local",
                             help="What starts workers; no result depends on it."),
    "transport": _option("--transport", type=click.Choice(["ipc", "tcp"]), default="ipc", help="How workers talk to "
                              "the coordinator: a private socket file, or TCP with keys of this run only."),
    "out": _option("--out", type=click.Path(path_type=Path), default=Path("experiments"), show_default=True,
                        metavar="DIR", help="Where experiment directories go."),
    "name": _option("--name", metavar="NAME", help="Name of the experiment directory. [default: task and time]"),
    "dry_run": _option("--dry-run", is_flag=True, help="Print the plan and stop."),
    "json": _option("--json", is_flag=True, help="Machine-readable output, nothing else on stdout."),
    "quiet": _option("--quiet", is_flag=True, help="No live view."),
}  # fmt: skip


def shared_options(*names: str) -> Decorator:
    """Decorator of a click command: the flags named, as `launch` has them, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):
            function = _OPTIONS[name](function)
        return function

    return decorate


def experiment_options(*, without: Sequence[str] = ()) -> Decorator:
    """Decorator of a click command: all flags of an experiment, in the order of its help, but those named."""
    return shared_options(*(name for name in _OPTIONS if name not in without))


def flag_help() -> dict[str, str]:
    """Flag -> its help in one line, without the default."""
    parameters = click.command()(experiment_options()(lambda **_: None)).params
    return {one.name or "": (getattr(one, "help", None) or "").split(" [default")[0] for one in parameters}


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


class ExperimentCommand(click.Command):
    """A command whose lists may be written with spaces; `ctx.meta[ARGUMENTS]` is what was typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, gather_lists(args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Complete as click does, and a word that continues a list as its first one."""
        param = None if incomplete.startswith("-") else self._collecting(ctx)
        return param.shell_complete(ctx, incomplete) if param else super().shell_complete(ctx, incomplete)

    def _collecting(self, ctx: click.Context) -> click.Parameter | None:
        """The option whose list is not at its end where the words typed so far end."""
        flags = [word for word in ctx.meta.get(ARGUMENTS, ()) if word.startswith("-")]
        last = flags[-1].removeprefix("--") if flags else ""
        return next((param for param in self.params if param.name == last and last in _LIST_FLAGS), None)
