"""The flags of `design --level checkpoints`: a plan for the evaluation of two checkpoints. Imports no libraries."""

from __future__ import annotations

import json as json_module
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._external import as_in_python
from esper_ab.commands._names_in import looks_in, names_in, seeds_in
from esper_ab.commands._parameters import PATH, Flags, in_order, switch, valued
from esper_ab.contracts.errors import UsageError

if TYPE_CHECKING:
    from esper_ab.design.exact_looks import Chances

_CHANCES = ".95:.5,.9:.5,.8:.5,.9:.7"
EVALUATION = ("level", "items", "binary", "unpaired", "chances", "correlation", "order", "order_seed")
_OF_RUNS = (
    "seeds",
    "tasks",
    "cells",
    "choose",
    "futility",
    "claim",
    "variances",
    "control",
    "worst",
    "best",
    "shape",
    "unit",
)  # flags of plans for runs
evaluation_options = in_order(
    [
        valued(
            "--level",
            "checkpoints",
            "Plan the evaluation of two checkpoints, one per group, instead of training runs.",
            type=click.Choice(("checkpoints",)),
        ),
        valued("--items", "N|FIRST..LAST|A,B,…", "Items, or trials of each arm, with --level checkpoints."),
        switch("--binary", "Outcomes are 1 (success) or 0, with --level checkpoints."),
        switch("--unpaired", "The trials of the two checkpoints share no items, as with --level checkpoints."),
        valued(
            "--chances",
            "P:Q,P:Q,…",
            f"Chances of success of the two checkpoints for which to print the power. [default: {_CHANCES}]",
        ),
        valued("--correlation", "R", "Correlation of the two outcomes on one item, for --chances.", type=float),
        valued("--order", "FILE", "The order of the trials, to fill in. [default: order.csv]", type=PATH),
        valued("--order-seed", "N", "Draw the order from this seed. [default: a random one]", type=click.IntRange(0)),
    ]
)


def refuse_without_level(evaluation: Flags) -> None:
    """Raise UsageError for a flag that only applies to checkpoints."""
    for name, value in evaluation.items():
        if value not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} needs --level checkpoints")


def design_evaluation(flags: Flags, evaluation: Flags, out_file: Path, *, dry_run: bool, json: bool) -> str:
    """Write the plan and the order of its trials unless `dry_run`; return the text to print."""
    # Imported here, so that --help needs no scipy.
    from esper_ab.readers.evaluation_plan import make_evaluation_plan
    from esper_ab.readers.external_plan import save_plan
    from esper_ab.readers.order_file import save_order
    from esper_ab.readers.scales import scales_of
    from esper_ab.report.evaluation_plan import evaluation_tree, render_evaluation
    from esper_ab.verdict.analysis_plan import Rule

    _check_flags(flags, evaluation)
    chances = _chances(evaluation)
    options = as_in_python({name: flags[name] for name in ("margin", "better", "label")})
    (scale,) = scales_of(("",), **options)
    rule = Rule(alpha=flags["alpha"], looks=looks_in(flags["looks"]), early_stop=not flags["no_early_stop"])
    seed = evaluation["order_seed"]
    plan = make_evaluation_plan(
        names_in(flags["groups"]),
        _parse_items(evaluation["items"]),
        scale,
        rule,
        paired=not evaluation["unpaired"],
        seed=secrets.randbits(32) if seed is None else seed,
    )
    order = evaluation["order"] or Path("order.csv")
    if not dry_run:
        if order.exists():
            raise UsageError(f"{order} exists already, and may have outcomes; choose another file with --order")
        save_plan(plan, out_file)
        save_order(plan, order)
    if json:
        return json_module.dumps(evaluation_tree(plan, str(out_file), str(order), chances)) + "\n"
    return render_evaluation(plan, str(out_file), str(order), chances)


def _check_flags(flags: Flags, evaluation: Flags) -> None:
    """Raise UsageError for flags that are missing, and for flags of plans for runs."""
    for name in _OF_RUNS:
        if flags[name]:
            raise UsageError(f"--{name} is for plans of runs; with --level checkpoints, leave it out")
    if evaluation["items"] is None:
        raise UsageError("--level checkpoints needs --items N: the number of items, or of trials of each checkpoint")
    if not evaluation["binary"]:
        raise UsageError(
            "--level checkpoints needs --binary: plans exist for outcomes of 0 or 1 only; for graded scores, evaluate "
            "all items and use `esper-ab judge` without a plan"
        )
    if evaluation["unpaired"] and evaluation["correlation"]:
        raise UsageError("--correlation is for items that both checkpoints try, not for --unpaired")


def _parse_items(text: str) -> tuple[str, ...]:
    """Parse --items into names; N items are named 1 to N."""
    if text.isdecimal() and text != "0":
        text = f"1..{text}"
    return seeds_in(text, 0, "--items")


def _chances(evaluation: Flags) -> list[Chances]:
    """Parse --chances and --correlation."""
    from esper_ab.design.exact_looks import correlated  # with scipy

    text = evaluation["chances"] or _CHANCES
    correlation = evaluation["correlation"] or 0.0
    chances = []
    for part in names_in(text):
        try:
            share_a, share_b = (_share(piece) for piece in part.split(":"))
        except ValueError:
            raise UsageError(f"--chances {text}: expected pairs of numbers from 0 to 1, as in .9:.5,.8:.5") from None
        try:
            chances.append(correlated(share_a, share_b, correlation))
        except ValueError as error:
            if not evaluation["chances"]:
                continue
            raise UsageError(f"--correlation {correlation:g}: {error}") from None
    return chances


def _share(text: str) -> Any:
    share = float(text)
    if not 0.0 <= share <= 1.0:
        raise ValueError(text)
    return share
