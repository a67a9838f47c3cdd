"""The flags of commands that take outcomes of runs made elsewhere, and what they mean. Light."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._parameters import PATH, Decorator, Flags, in_order, valued
from esper_ab.contracts.errors import UsageError

if TYPE_CHECKING:
    from esper_ab.api.external import OutcomeVerdicts

_OPTIONS = {
    "margin": valued("--margin", "SIZE",
        "The smallest difference worth acting on, in the unit of the outcome; it has no default. Of several tasks "
        "also TASK=SIZE,TASK=SIZE."),
    "better": valued("--better", "higher|lower",
        "Which outcomes are better; of several tasks also TASK=lower,TASK=higher.", default="higher"),
    "unit": valued("--unit", "UNIT", "Unit of the outcome; of several tasks also TASK=UNIT,TASK=UNIT.", default=""),
    "label": valued("--label", "WORDS", "What the outcome is, in words.", default="outcome"),
    "worst": valued("--worst", "VALUE",
        "The worst possible outcome. It stands for lost runs of a group that is called better; without it a group "
        "that lost runs never is. Of several tasks also TASK=VALUE,….", default=""),
    "control": valued("--control", "NAME", "Compare the others with this group. [default: all pairs]", default=""),
    "alpha": valued("--alpha", "P", "Error rate of all comparisons together.", type=float, default=0.05),
    "rows": valued("--rows", "runs",
        "Every row is a training run; has to be said of more than 30 per group and task without a column run.",
        type=click.Choice(("runs",))),
    "paired": valued("--paired/--unpaired", None,
        "Whether the runs of one seed form a pair. [default: as the seeds show]", default=None),
    "scores": valued("--scores", "WORST..TARGET",
        "Outcomes that are scores of 0 and of 1, for performance profiles and the optimality gap beside the verdict; "
        "of several tasks TASK=WORST..TARGET,…", default=""),
    "figure": valued("--figure", "FILE.svg|png|pdf", "Draw it; replaces a file that is there.", type=PATH),
    "columns": valued("--columns", "OURS=THEIRS,…",
        "Columns that have other names, as in group=algorithm,outcome=return.", default=""),
}  # fmt: skip
RULE = ("margin", "better", "unit", "label", "worst", "control", "alpha")


def external_options(*names: str) -> Decorator:
    """Decorator of a click command: the flags named, in this order."""
    return in_order([_OPTIONS[name] for name in names])


def columns_of(text: str) -> dict[str, str]:
    """Our names of columns -> those of a file, from --columns."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if not (equals and ours and theirs):
            raise UsageError(f"--columns {text}: OURS=THEIRS, as in group=algorithm,outcome=return")
        if ours in found:
            raise UsageError(f"--columns {text}: {ours} is named twice")
        found[ours] = theirs
    return found


def as_in_python(flags: Flags) -> dict[str, Any]:
    """The flags of a command as options of the Python function for it, what differs between tasks by task."""
    from esper_ab.readers.external_plan import told_by_task  # with scipy

    if flags["margin"] is None:  # nobody but the user knows it
        raise UsageError("--margin SIZE is needed: the smallest difference worth acting on, in the outcome's unit")
    by_task = ("margin", "better", "unit", "worst", "scores")
    return {name: told_by_task(value) if name in by_task else value for name, value in flags.items()}


def printed(found: OutcomeVerdicts, *, figure: Path | None, json: bool) -> str:
    """What a command prints of a result, after its figure was drawn."""
    # Here, so that --help waits for no numpy, and what draws nothing for no matplotlib.
    from esper_ab.report.external import external_json

    if figure is not None:
        from esper_ab.report.figures.catalogue import external_figure, write_figure  # likewise

        write_figure(external_figure(found), figure)
    return external_json(found) + "\n" if json else str(found)
