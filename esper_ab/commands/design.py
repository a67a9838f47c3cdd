"""`esper-ab design`: before the first run, write a plan with looks and bounds for runs done elsewhere."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Any

import click

from esper_ab.commands._evaluation import EVALUATION, design_evaluation, evaluation_options, refuse_without_level
from esper_ab.commands._exit_status import command_with
from esper_ab.commands._external import RULE, as_in_python, external_options
from esper_ab.commands._names_in import looks_in, names_in, seeds_in
from esper_ab.commands._options import RecordingCommand
from esper_ab.commands._parameters import MOST_SEEDS, PATH, json_flag, switch, valued
from esper_ab.commands._questions import answers_to
from esper_ab.contracts.errors import Unanswered
from esper_ab.contracts.shell_command import typeable


@command_with(
    "esper-ab design --groups new,old --seeds 20 --margin 2",
    "esper-ab design --groups new,old --seeds 100..119 --tasks Hopper,Walker --margin Hopper=200,Walker=300",
    "esper-ab design --level checkpoints --binary --groups old,new --items 50 --unpaired --margin 0.1",
    cls=RecordingCommand,
)
@valued("--groups", "A,B,…", "Names of the groups, as in the results.", required=True)
@valued(
    "--seeds",
    "N|FIRST..LAST|A,B,…",
    "Number of seeds, which are then named 0 to N - 1; or the names of the seeds (or pairs) in the order in which they "
    "run.",
)
@valued("--tasks", "A,B,…", "Tasks; each gets a verdict, and so does their mean. [default: one task without a name]")
@valued("--cells", "A,B,…", "Settings to choose from: each group is judged at its own best setting; needs --choose.")
@valued(
    "--choose",
    "N",
    "Number of extra seeds that run first and are used only to choose the cells.",
    type=click.IntRange(0, MOST_SEEDS),
    default=0,
)
@external_options(*RULE, "shape", "best")
@valued("--looks", "N,N,…", "Numbers of seeds at the interim looks. [default: 14,20 for 20; one look below 16]")
@switch("--no-early-stop", "Keep running after a comparison is decided.")
@valued(
    "--futility",
    "POWER",
    "Stop a comparison early if a difference as large as the margin has become unlikely. With 0.8, at most 20 % of "
    "true differences of that size are missed. [default: off]",
    type=float,
    default=0.0,
)
@valued(
    "--claim",
    "difference|not-worse",
    "What to show. not-worse: that each group is not worse than --control by the margin or more; a one-sided question, "
    "which ends as soon as that is shown. [default: difference]",
    type=click.Choice(("difference", "not-worse")),
)
@valued(
    "--variances",
    "own|moderated",
    "moderated: with three groups or more, the variance of each comparison is shrunk to the mean of all. "
    "[default: own]",
    type=click.Choice(("own", "moderated")),
)
@evaluation_options
@valued("--out", "FILE", "The plan; an existing file is not replaced.", type=PATH, default="plan.json")
@switch("--dry-run", "Show the plan and write nothing.")
@json_flag
@click.pass_context
def command(context: click.Context, /, out: Path, dry_run: bool, json: bool, **flags: Any) -> None:
    """Write a plan for runs made elsewhere, before the first run: comparisons, looks and bounds.

    After the runs, `esper-ab judge` judges their outcomes by this plan.
    """
    evaluation = {name: flags.pop(name) for name in EVALUATION}
    if evaluation["level"]:
        click.echo(typeable(design_evaluation(flags, evaluation, out, dry_run=dry_run, json=json)), nl=False)
        return
    refuse_without_level(evaluation)
    if flags["seeds"] is None:
        raise click.MissingParameter(ctx=context, param=next(p for p in context.command.params if p.name == "seeds"))
    # Imported here, so that --help needs no scipy.
    from esper_ab.api.external import designed
    from esper_ab.readers.external_plan import save_plan
    from esper_ab.report.external_plan import render_plan

    names_by_key = {name: names_in(flags[name]) for name in ("tasks", "cells") if flags[name]}
    flags |= {"looks": looks_in(flags["looks"]), "early_stop": not flags["no_early_stop"]}
    options = as_in_python(flags | {"tasks": (), "cells": ()} | names_by_key)
    groups = names_in(flags["groups"])
    seeds = seeds_in(flags["seeds"], flags["choose"])
    try:
        plan = designed(groups, seeds, options)
    except Unanswered as error:
        plan = designed(groups, seeds, options | answers_to(error, "design"))
    if not dry_run:
        save_plan(plan, out)
    if json:
        tree = {"file": str(out), "sha256": plan.digest, "looks": plan.design.looks}
        click.echo(json_module.dumps(tree))
    else:
        click.echo(typeable(render_plan(plan, str(out))), nl=False)
