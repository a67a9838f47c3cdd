"""The table of an experiment's flags, with their help. Imports no libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from esper_ab.commands._parameters import AT_LEAST_1, JSON, PATH, switched, takes
from esper_ab.contracts import catalog


class Margin(click.types.FloatParamType):
    """Click type of --margin: a number, or text with the margins of several tasks, parsed in settings/parts.py."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or the text for several tasks."""
        if isinstance(value, str) and "=" in value:
            return value
        return super().convert(value, param, ctx)


_TASK = "A built-in task, or a Gymnasium environment: gym:ID or path/env.py:make."
_TASK_DEFAULT = "[default: digits]"
_MARGIN = "The smallest difference in outcome worth acting on, in its unit"
_MARGIN_DEFAULT = "[default: the task's own, if it declares one: 2 points for growth tasks]"
# Heading -> flags of an experiment; the first heading has those that most people need.
SECTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "What most experiments need": {
        "vary": takes(
            "KEY=V1,V2,…",
            "One group per value, named KEY=VALUE; the others are compared with the first. KEY is a placeholder of "
            "the command, a setting of the trainer, or any other setting, as in ppo.lr.",
        ),
        "higher": takes(
            "NAME",
            "The outcome that decides, where higher is better. For a command: a key, a column or a tag of a file that "
            "it writes, or a name in its output; FILE:NAME, tb:TAG, stdout:NAME or wandb:KEY if several have it. For a "
            "Python trainer: the outcome's name. For Gymnasium: info:KEY or FILE:FUNCTION. [default: the return]",
        ),
        "lower": takes("NAME", "Like --higher, for an outcome where lower is better."),
        "groups": takes(
            "A,B,…", "Reward modes or controllers; NAME=MODE gives a group its own name. [default: shaped,simplified]"
        ),
        "group": takes("NAME:KEY=VALUE,…", "Change settings of group NAME, or add a group. Repeatable.", multiple=True),
        "set": takes("KEY=VALUE", "Change a setting for all groups. Repeatable.", multiple=True),
        "task": takes(
            "NAME[,NAME…]", f"{_TASK} Several tasks get a verdict each, and one on their mean. {_TASK_DEFAULT}"
        ),
        "episodes": takes("N", "Training episodes per run. [default: 3; for Gymnasium 50]"),
        "n_envs": takes("N", "Environments per run. [default: 4; for Gymnasium 8]"),
        "seeds": takes(
            "N|auto", "Seeds per group; a verdict needs at least 6. auto: as many as needed, up to --max. [default: 6]"
        ),
        "margin": takes(
            "SIZE", f"{_MARGIN}. For several tasks: one size, or TASK=SIZE,…. {_MARGIN_DEFAULT}", type=Margin()
        ),
        "devices": takes(
            "A B …", "cuda:0, cpu:1, …; cuda: all GPUs; cpu: all cores. [default: all GPUs; without any, cores]"
        ),
        "dry_run": switched("Print the plan and stop."),
    },
    "What is trained": {
        "data_dir": takes("DIR", "Folder with the task's data, if the package does not include it."),
        "slots": takes("A B …", "Slots that may grow a seed module, in network order. [default: all]"),
        "steps": takes(
            "N", "Decisions (and host epochs) per episode; for Gymnasium a maximum. [default: 25; for Gymnasium 1000]"
        ),
        "total_timesteps": takes(
            "N", "Environment steps per Gymnasium run, instead of --episodes; rounded up to whole rollouts."
        ),
        "rng_seed": takes("N", "Root of all randomness. [default: 0]"),
        "no_telemetry": switched("Leave the per-module growth log out of the journal; results stay the same."),
    },
    "Your own environment or trainer": {
        "outcome_unit": takes("UNIT", "Unit of the trainer's outcome."),
        "outcome_range": takes(
            "LOW..HIGH", "Range of the outcome, for Gymnasium or a trainer; a NaN counts as the worst value."
        ),
        "outcome_summary": takes(
            "last|mean-last-K|max|min",
            "How the numbers of a command's source, such as a column or a tag, become the outcome. [default: last]",
        ),
        "end_idle": switched(
            "End a command that has written its result and then does nothing for 30 s; its result counts."
        ),
        "rehearsal": takes(
            "NAME=VALUE,…", "Settings that shorten the trainer's rehearsal; they apply to the rehearsal only."
        ),
        "code": takes(
            "NAME=STATE",
            "Train group NAME with this state of your code: a commit, branch or tag of the git repository that you are "
            "in, or a folder as it is now (. for your working tree). Repeat it, as in --code base=main --code head=. "
            "The others are compared with the first.",
            multiple=True,
        ),
    },
    "What is compared, and by which rule": {
        "max": takes("N", "Largest number of seeds, with --seeds auto.", type=AT_LEAST_1),
        "looks": takes("N,N,…", "Numbers of seeds at the interim looks. [default: 14,20 for 20; one look below 16]"),
        "no_early_stop": switched("Keep training after a comparison is decided."),
        "futility": takes(
            "POWER",
            "Stop a comparison early if a difference as large as the margin has become unlikely. With 0.8, at most "
            "20 % of true differences of that size are missed. [default: off]",
            type=float,
        ),
        "claim": takes(
            "difference|not-worse",
            "What to show. not-worse: that each group is not worse than --control by the margin or more, one-sided. "
            "[default: difference]",
        ),
        "guardrail": takes(
            "'lower|higher NAME margin SIZE[%]'",
            "A measure that must not get worse, tested after the claim, as in 'lower wall_s margin 10%'. Repeatable.",
            multiple=True,
        ),
        "variances": takes(
            "own|moderated",
            "moderated: with three groups or more, the variance of each comparison is shrunk to the mean of all. "
            "[default: own]",
        ),
        "shape": takes(
            "same|any",
            "any: claims must hold whatever the distributions of the groups, also with rare failures in one of them; "
            "this needs the range of outcomes and many more seeds. [default: same, which assumes that they have one "
            "shape]",
        ),
        "control": takes("NAME", "Compare all other groups with this one. [default: all pairs]"),
        "untested": takes("A,B,…", "Groups to measure without comparing them."),
        "outcome_over": takes(
            "evaluation|last-tenth|last-third|curve-mean",
            "The part of a run that its outcome summarises. [default: evaluation]",
        ),
        "alpha": takes("P", "Error rate of the whole experiment. [default: 0.05]", type=float),
        "grid": takes(
            "KEY=V1,V2,…",
            "Run every group at every value, and judge the mean over the grid. Repeat the flag for all combinations.",
            multiple=True,
        ),
        "scores": takes(
            "WORST..TARGET",
            "For several tasks: outcomes that score 0 and 1, for performance profiles and the optimality gap; one "
            "range, or TASK=WORST..TARGET,…. [default: the ends of the tasks' ranges, if all are known]",
        ),
        "eval_episodes": takes(
            "N|auto",
            "Evaluation episodes per trained policy; auto: those with the least variance x cost by --calibration, else "
            "16. [default: auto]",
        ),
        "unpaired": switched("Give each group its own randomness, for calibration."),
        "calibration": takes(
            "FILE", "File written by `esper-ab calibrate`, with the spread between runs of one group.", type=PATH
        ),
        "reward_audit": takes(
            "FILE",
            "File of `esper-ab growth rewards` for these groups' rewards; it is added to the journal and the report.",
            type=PATH,
        ),
        "references": takes(
            "DIR",
            "Keep finished runs in this folder, and use those of earlier experiments again instead of training them, "
            "where that is valid.",
            type=PATH,
        ),
        "references_limit": takes(
            "SIZE", "Size of that folder, as in 500MB; runs used longest ago are removed. [default: 1GB]"
        ),
        "fail_unless": takes(
            "REQUIREMENT",
            'Exit with status 12 unless the verdict supports this, as in "simplified better-than shaped". Repeatable.',
            multiple=True,
        ),
    },
    "Where it runs": {
        "devices_per_run": takes("N", "Devices per run. [default: 1]"),
        "max_parallel": takes("N", "Largest number of runs that train at the same time.", type=AT_LEAST_1),
        "parallel": takes(
            None,
            "Run as many runs at once as the devices allow (--parallel), or one at a time (--no-parallel). [default: "
            "--parallel]",
            default=True,
            show_default=False,
        ),
        "no_retry": switched(
            "Give up a run as soon as its worker dies. [default: retry; give up after two retries without progress]"
        ),
        "placement": takes(
            "auto|spread|share|alternate|sequence",
            "One run per device (spread); or all runs of a block on one device: side by side (share), in turn by "
            "episode (alternate), or one after the other (sequence). [default: spread if there are enough devices, "
            "else share]",
        ),
        "order": takes(
            "balanced|fixed|shuffled",
            "How groups are assigned to devices and start order in each block. [default: balanced]",
        ),
        "sync": takes(
            "lockstep|independent",
            "Whether the runs of a block wait for each other after every episode. [default: lockstep]",
        ),
        "threads": takes("N", "CPU threads of each worker. [default: 1]"),
        "amp": takes(
            "off|bf16|fp16|auto",
            "Precision of host training, for all groups; fp16: for GPUs without bf16; auto: off, until a gain is "
            "measured. [default: off]",
        ),
        "kernel": takes(
            "auto|native|torch",
            "Compute policies, and train hosts on a CPU, with the native kernel or with torch; auto: the native kernel "
            "if it is available. [default: auto]",
        ),
        "deterministic": takes(None, "Use only bit-reproducible kernels. [default: --deterministic]", default=None),
        "launcher": takes(
            None,
            "How to start workers; results do not depend on it. [default: local]",
            type=click.Choice(catalog.names("esper_ab.launchers")),
            default=None,
        ),
        "transport": takes(
            None,
            "How workers connect to the coordinator: by a private socket file (ipc), or by encrypted TCP with keys for "
            "this launch only (tcp). [default: ipc; tcp for workers on other machines]",
            type=click.Choice(["ipc", "tcp"]),
            default=None,
        ),
        "ray_address": takes(
            "HOST:PORT",
            "Address of the Ray cluster; auto: the cluster that this machine belongs to. [default: RAY_ADDRESS, else "
            "start a cluster on this machine]",
        ),
        "ray_label": takes("KEY=VALUE", "Use only Ray nodes with this label. Repeatable.", multiple=True),
        "ray_wait": takes(
            "SECONDS",
            "How long to wait until Ray has resources for all workers. [default: 600]",
            type=click.FloatRange(min=0),
        ),
    },
    "What comes out": {
        "output_dir": takes("DIR", "Folder for experiment directories.", type=PATH, default=Path("experiments")),
        "name": takes("NAME", "Name of the experiment directory. [default: task and time]"),
        "json": JSON,
        "quiet": switched("Show no live view."),
        "verbose": switched("Print a line on stderr for each record, instead of the live view."),
        "yes": switched(
            "Do not ask before an experiment that may take more than a day, or more memory than is available."
        ),
        "track": takes(
            "A,B,…",
            "Trackers that follow the experiment: wandb, tensorboard. If a tracker fails, the experiment continues.",
        ),
        "wandb_mode": takes("online|offline", "[default: WANDB_MODE, else online]"),
        "wandb_entity": takes("NAME", "Team or user at W&B."),
        "wandb_project": takes("NAME", "[default: ab_test_NAME_DATE]"),
    },
}
FLAGS = {name: flag_parameters for flags in SECTIONS.values() for name, flag_parameters in flags.items()}

# Flags that differ for a command that takes one task.
ONE_TASK_FLAGS = {
    "task": takes("NAME", f"{_TASK} {_TASK_DEFAULT}"),
    "margin": takes("SIZE", f"{_MARGIN}. {_MARGIN_DEFAULT}", type=float),
}

# Flags of commands that grow hosts without an experiment.
HOST_FLAGS = {
    "task": takes("NAME", "The built-in task.", default="digits"),
    "data_dir": takes("DIR", "Folder with the task's data, if the package does not include it.", default=""),
    "rng_seed": takes("N", "Root of all randomness.", type=click.IntRange(0), default=0, show_default=True),
    "device": takes("NAME", "torch device for the hosts.", default="cpu"),
}
