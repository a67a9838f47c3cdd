"""The flags that say what to run, shared by every command that trains, as click decorators. Light."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from esper_ab.commands._parameters import AT_LEAST_1, JSON, PATH, Decorator, in_order, switch, switched, takes
from esper_ab.contracts import catalog

ARGUMENTS = "esper_ab.arguments"
_LIST_FLAGS = ("slots", "devices")  # their values may be several words


class Margin(click.types.FloatParamType):
    """The type of a margin: a number, or a text with the margins of several tasks, read by settings/parts.py."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or the text."""
        several = isinstance(value, str) and "=" in value
        return value if several else super().convert(value, param, ctx)


_TASK = "What hosts learn; gym:ID, or path/env.py:make, is an environment of Gymnasium."
_TASK_DEFAULT = "[default: digits]"
_MARGIN = "The smallest difference in outcome worth acting on, in its unit"
_MARGIN_DEFAULT = "[default: that of the task, where it declares one: 2 points for the tasks of growth]"
# Heading -> flags of an experiment, the ten first that people need first.
_SECTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "What most experiments need": {
        "vary": takes("KEY=V1,V2,…",
            "One group per value, called KEY=VALUE; the others are compared with the first. KEY is a placeholder of "
            "the command, a setting of the trainer, or any setting, as in ppo.lr."),
        "higher": takes("NAME",
            "The outcome that decides, and that more of it is better. Of a command: a key of the JSON or a column of "
            "the CSV that it leaves in {out} (the last row), FILE:NAME among several, wandb:KEY; of a Python trainer: "
            "a name; of Gymnasium: info:KEY or FILE:FUNCTION. [default: the return]"),
        "lower": takes("NAME", "The same, where less of it is better."),
        "groups": takes("A,B,…",
            "Reward modes or controllers; NAME=MODE gives another name. [default: shaped,simplified]"),
        "group": takes("NAME:KEY=VALUE,…", "Alter NAME, or create it. Repeatable.", multiple=True),
        "set": takes("KEY=VALUE", "Any setting, for all groups. Repeatable.", multiple=True),
        "task": takes("NAME[,NAME…]", f"{_TASK} Of several: an answer on each and on their mean. {_TASK_DEFAULT}"),
        "episodes": takes("N", "Training episodes per run. [default: 3; of Gymnasium 50]"),
        "n_envs": takes("N", "Environments per run. [default: 4; of Gymnasium 8]"),
        "seeds": takes("N|auto",
            "Repetitions; 6 are the least that can carry a verdict. auto: as many as it takes, up to --max. [default: "
            "6]"),
        "margin": takes("SIZE", f"{_MARGIN}; of several tasks also TASK=SIZE,…. {_MARGIN_DEFAULT}", type=Margin()),
        "devices": takes("A B …",
            "cuda:0, cpu:1, or cuda, cpu for all. [default: GPUs or cores, by an estimate of both]"),
        "dry_run": switched("Print the plan and stop."),
    },
    "What is trained": {
        "data_dir": takes("DIR", "Where a task's data is, if it does not ship."),
        "slots": takes("A B …", "Slots that may grow, in network order. [default: all]"),
        "steps": takes("N",
            "Host epochs, and decisions, per episode. [default: 25; of Gymnasium at most 1000]"),
        "total_timesteps": takes("N",
            "Environment steps per run of Gymnasium, in place of --episodes; rounded up to whole rollouts."),
        "rng_seed": takes("N", "Root of all randomness. [default: 0]"),
        "no_telemetry": switched("Do not record the life of every seed module; no result depends on it."),
    },
    "Your own environment or trainer": {
        "outcome_unit": takes("UNIT", "Unit of a trainer's outcome."),
        "outcome_range": takes("LOW..HIGH",
            "Possible outcomes, of Gymnasium or a trainer; the worse end stands for one that is no number."),
        "rehearsal": takes("NAME=VALUE,…",
            "Settings of the preflight's rehearsal of a trainer alone, which shorten it."),
    },
    "What is compared, and by which rule": {
        "max": takes("N", "With --seeds auto: the most.", type=AT_LEAST_1),
        "looks": takes("N,N,…", "Seeds at the interim looks. [default: 10,14,20 of 20; one below 16]"),
        "no_early_stop": switched("Go on with a comparison that is decided."),
        "futility": takes("POWER",
            "Stop a comparison at an interim look that makes a difference of the margin unlikely. Of such differences "
            "POWER (0.8) at least are not stopped. [default: off]", type=float),
        "control": takes("NAME", "Compare the others with this group. [default: all pairs]"),
        "untested": takes("A,B,…", "Groups that are measured and in no comparison."),
        "screening": switched(
            "Judge every group that learns against --control, which does not: continue, revise or stop."),
        "outcome_over": takes("evaluation|last-tenth|curve-mean", "What one run comes to. [default: evaluation]"),
        "alpha": takes("P", "Error rate of the whole experiment. [default: 0.05]", type=float),
        "grid": takes("KEY=V1,V2,…",
            "Ask over a grid: every group runs at every value, and the answer is on the mean over them. Repeatable: "
            "all combinations.", multiple=True),
        "scores": takes("WORST..TARGET",
            "Of several tasks: outcomes that are scores of 0 and of 1, for performance profiles and the optimality "
            "gap; one, or TASK=WORST..TARGET,…. [default: the ends of their ranges, where all have both]"),
        "eval_episodes": takes("N|auto",
            "Episodes that each trained policy is evaluated in; auto: by a calibration, the number with the least "
            "variance x cost. [default: auto]"),
        "unpaired": switched("Own randomness per group, for calibration."),
        "calibration": takes("FILE",
            "What `esper-ab calibrate` wrote: how much runs differ by chance.", type=PATH),
        "reward_audit": takes("FILE",
            "What `esper-ab growth rewards` wrote: journal and report include it, for the groups' rewards.", type=PATH),
        "fail_unless": takes("REQUIREMENT",
            '"simplified better-than shaped": exit status 12 when the verdict is another. Repeatable.', multiple=True),
    },
    "Where it runs": {
        "devices_per_run": takes("N", "Devices of one run. [default: 1]"),
        "max_parallel": takes("N", "Runs that train at the same time, at most.", type=AT_LEAST_1),
        "parallel": takes(None,
            "As many runs at once as the devices carry, or one. [default: --parallel]", default=True,
            show_default=False),
        "no_retry": switched(
            "Give up a run whose worker dies at once. [default: it is taken up again, at most twice without progress]"),
        "placement": takes("auto|spread|share|alternate|sequence",
            "One run per device; or on one device a block's runs side by side, in turn by episode, or one whole run "
            "after the other. [default: spread where there are enough devices, else share]"),
        "order": takes("balanced|fixed|shuffled",
            "Which group takes which device and place in the start order of a block. [default: balanced]"),
        "sync": takes("lockstep|independent",
            "Whether runs wait for each other after every episode. [default: lockstep]"),
        "share_observation_norm": switched(
            "The learners of a seed normalise observations by the moments of all of them; couples the groups."),
        "threads": takes("N", "CPU threads per worker, the same for all. [default: 1]"),
        "amp": takes("off|bf16|fp16|auto",
            "Precision of host training, for all groups; auto: off, until a gain is measured. [default: off]"),
        "kernel": takes("auto|native|torch",
            "What computes policies, and on a CPU trains hosts: the native kernel or torch; auto: the kernel where it "
            "can be had. [default: auto]"),
        "deterministic": takes(None,
            "Only kernels that give the same bits every time. [default: --deterministic]", default=None),
        "launcher": takes(None,
            "What starts workers; no result depends on it. [default: local]",
            type=click.Choice(catalog.names("esper_ab.launchers")), default=None),
        "transport": takes(None,
            "How workers talk to the coordinator: a private socket file, or TCP with keys of this run only. [default: "
            "ipc; tcp for workers on other machines]", type=click.Choice(["ipc", "tcp"]), default=None),
        "ray_address": takes("HOST:PORT",
            "Address of the cluster, with --launcher ray; auto: that of this machine. [default: RAY_ADDRESS, else a "
            "cluster that it starts on this machine]"),
        "ray_label": takes("KEY=VALUE",
            "Of the nodes of the cluster that count, with --launcher ray. Repeatable.", multiple=True),
        "ray_wait": takes("SECONDS",
            "How long to wait until Ray has room for all workers. [default: 600]", type=click.FloatRange(min=0)),
    },
    "What comes out": {
        "output_dir": takes("DIR",
            "Where experiment directories go.", type=PATH, default=Path("experiments")),
        "name": takes("NAME", "Name of the experiment directory. [default: task and time]"),
        "json": JSON,
        "quiet": switched("No live view."),
        "verbose": switched("A line on stderr for everything that is recorded, in place of the live view."),
        "yes": switched(
            "Start what is estimated to take more than a day, or more memory than there is, without asking."),
        "track": takes("A,B,…",
            "What follows the experiment: wandb, tensorboard. A tracker that breaks does not concern the experiment."),
        "wandb_mode": takes("online|offline", "[default: WANDB_MODE, else online]"),
        "wandb_entity": takes("NAME", "Team or user at W&B."),
        "wandb_project": takes("NAME", "[default: ab_test_NAME_DATE]"),
        "detach": switched("Go on without this terminal; `esper-ab status -f` shows it, `esper-ab stop` ends it."),
    },
}
_FLAGS = {name: how for flags in _SECTIONS.values() for name, how in flags.items()}
# What `launch --help` shows.
_FIRST = {
    "What most experiments need": tuple(_SECTIONS["What most experiments need"]),
    "What is compared": ("control", "grid", "fail_unless"),
    "Where it runs, and what comes out": (
        "max_parallel", "launcher", "output_dir", "name", "json", "detach", "help_all", "help",
    ),
}
_ALL = "esper_ab.all"  # in ctx.meta: whether the help shows every flag
_SWITCHED = ("deterministic", "parallel")  # flags with an opposite

# The same of a command that takes one task.
_OF_ONE_TASK = {
    "task": takes("NAME", f"{_TASK} {_TASK_DEFAULT}"),
    "margin": takes("SIZE", f"{_MARGIN}. {_MARGIN_DEFAULT}", type=float),
}

# Those of commands that grow hosts without an experiment.
_OF_HOSTS = {
    "task": takes("NAME", "What hosts learn.", default="digits"),
    "data_dir": takes("DIR", "Where a task's data is, if it does not ship.", default=""),
    "rng_seed": takes("N", "Root of all randomness.", type=click.IntRange(0), default=0, show_default=True),
    "device": takes("NAME", "torch device for the hosts.", default="cpu"),
}
LAUNCHER_FLAGS = ("launcher", "transport", "ray_address", "ray_label", "ray_wait")


def _declared(flags: dict[str, dict[str, Any]]) -> Decorator:
    options = []
    for name, how in flags.items():
        flag = f"--{name.replace('_', '-')}"
        short = ("-v",) if name == "verbose" else ()
        options.append(click.option(*short, f"{flag}/--no-{name}" if name in _SWITCHED else flag, name, **how))
    return in_order(options)


def shared_options(*names: str) -> Decorator:
    """Decorator of a click command: the flags named, as `launch` has them, in this order."""
    return _declared({name: _FLAGS[name] for name in names})


def hosts_options(*names: str) -> Decorator:
    """Decorator of a click command: the flags named, of hosts that are grown without an experiment."""
    return _declared({name: _OF_HOSTS[name] for name in names})


def experiment_options(*, without: Sequence[str] = (), one_task: bool = False) -> Decorator:
    """Decorator of a click command: WHAT, and all flags of an experiment, in the order of its help, but those named."""
    flags = _FLAGS | (_OF_ONE_TASK if one_task else {})
    declared = _declared({name: how for name, how in flags.items() if name not in without})
    return lambda function: click.argument("what", metavar="[WHAT]", required=False)(declared(function))


def _show_all(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


help_all = switch("--help-all", "Show every flag and exit.", is_eager=True, expose_value=False, callback=_show_all)


def flag_help() -> dict[str, str]:
    """Flag -> its help in one line, without the default."""
    return {name: how["help"].partition("[default")[0].rstrip() for name, how in _FLAGS.items()}


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

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, those under none last; without --help-all the first."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {param.opts[-1][2:].replace("-", "_"): param.get_help_record(ctx) for param in options}
        short = "help_all" in records and _ALL not in ctx.meta
        sections = {
            heading: [records.pop(name, None) for name in names]
            for heading, names in (_FIRST if short else _SECTIONS).items()
        }
        for heading, rows in (sections if short else sections | {"More": list(records.values())}).items():
            if found := [row for row in rows if row is not None]:
                with formatter.section(heading):
                    formatter.write_dl(found)
