"""The flags of `design`, `judge` and `compare`, which work on outcomes of finished runs. Imports no libraries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from esper_ab.commands._exit_status import NOTHING_ANSWERED
from esper_ab.commands._parameters import AT_LEAST_1, PATH, Decorator, Flags, in_order, switch, valued
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import typeable
from esper_ab.verdict.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from esper_ab.api.external import OutcomeVerdicts
    from esper_ab.verdict.comparison import Comparison

_OPTIONS = {
    "margin": valued(
        "--margin", "SIZE", "The smallest difference worth acting on, in the outcome's unit; there is no default."
    ),
    "better": valued(
        "--better",
        "higher|lower",
        "Which outcomes are better. [default: higher; asked if the name says loss, error, …]",
        default=None,
    ),
    "unit": valued("--unit", "UNIT", "Unit of the outcome.", default=""),
    "label": valued("--label", "WORDS", "Name of the outcome.", default="outcome"),
    "worst": valued(
        "--worst",
        "VALUE",
        "The worst possible outcome, for lost runs; without it, a group that lost runs is never called better.",
        default="",
    ),
    "best": valued("--best", "VALUE", "The best possible outcome, for --shape any.", default=""),
    "shape": valued(
        "--shape",
        "same|any",
        "any: claims must hold whatever the distributions of the groups, also with rare failures in one of them; this "
        "needs --worst, --best and many more seeds. [default: same, which assumes that they have one shape]",
        type=click.Choice(("same", "any")),
    ),
    "control": valued("--control", "NAME", "Compare with this group only, not all pairs.", default=""),
    "alpha": valued("--alpha", "P", "Total error rate.", type=float, default=0.05),
    "rows": valued(
        "--rows",
        "runs|items",
        "What a row is, if no column tells: a training run, or an item of one.",
        type=click.Choice(("runs", "items")),
    ),
    "level": valued(
        "--level",
        "checkpoints|trainings",
        "What an answer from items is about. [default: trainings, if each group has two runs]",
        type=click.Choice(("checkpoints", "trainings")),
    ),
    "closed_items": switch("--closed-items", "The items are all that matter, as in a closed benchmark."),
    "paired": valued(
        "--paired/--unpaired", None, "Whether equal seeds form pairs. [default: if groups share seeds]", default=None
    ),
    "scores": valued("--scores", "WORST..TARGET", "Outcomes that score 0 and 1, for performance profiles.", default=""),
    "figure": valued("--figure", "FILE.svg|png|pdf", "Draw the result; replaces an existing file.", type=PATH),
    "columns": valued("--columns", "OURS=THEIRS,…", "Map names: group=algorithm,outcome=return.", default=""),
    "groups": valued("--groups", "A,B,…", "Columns of one group each; a row is a seed.", default=""),
    "runs": valued("--runs", "PATTERN", "How names tell runs, as '{group}-s{seed}'.", default=""),
    "at": valued("--at", "STEP", "Take outcomes at this step, not the last.", type=float),
    "mean_last": valued("--mean-last", "N", "Take the mean of each run's last N values.", type=AT_LEAST_1),
    "verbose": switch("--verbose", "Also print every table.", "-v"),
}
RULE = ("margin", "better", "unit", "label", "worst", "control", "alpha")


def external_options(*names: str) -> Decorator:
    """Return a decorator that adds the named flags to a click command, in this order."""
    return in_order([_OPTIONS[name] for name in names])


def columns_of(text: str) -> dict[str, str]:
    """Parse --columns into a mapping from our column names to those of the file.

    UsageError for a bad or repeated name.
    """
    if not text:
        return {}
    names: dict[str, str] = {}
    for part in text.split(","):
        our_name, equals_sign, their_name = (piece.strip() for piece in part.partition("="))
        if not (equals_sign and our_name and their_name):
            raise UsageError(f"--columns {text}: expected OURS=THEIRS, as in group=algorithm,outcome=return")
        if our_name in names:
            raise UsageError(f"--columns {text}: {our_name} is named twice")
        names[our_name] = their_name
    return names


def as_in_python(flags: Flags) -> dict[str, Any]:
    """Convert a command's flags to options of the Python function; values per task become mappings."""
    from esper_ab.readers.scales import read_by_task  # with scipy

    if flags["margin"] is None:  # only the user can know it
        raise UsageError("--margin SIZE is needed: the smallest difference worth acting on, in the outcome's unit")
    by_task = ("margin", "better", "unit", "worst", "best", "scores")
    options: dict[str, Any] = {}
    for name, value in flags.items():
        if name in ("better", "claim", "variances", "shape") and value is None:
            continue
        options[name] = read_by_task(value) if name in by_task else value
    return options


def status_of(comparisons: Iterable[Comparison]) -> int:
    """Return the exit status: NOTHING_ANSWERED if there is no comparison about which anything could be said."""
    unanswered_verdicts = (Verdict.NO_INFERENCE, Verdict.BLOCKED)
    if all(comparison.verdict in unanswered_verdicts for comparison in comparisons):
        return NOTHING_ANSWERED
    return 0


def printed(verdicts: OutcomeVerdicts, *, figure: Path | None, json: bool, verbose: bool) -> str:
    """Draw the figure if one is requested, and return the verdicts as JSON, or as text for the screen.

    Unless `verbose`, the text is limited to one screen.
    """
    # Imported here, so that --help needs no numpy, and a call without a figure no matplotlib.
    from esper_ab.report.external import external_json, external_report
    from esper_ab.report.text import render_text

    if figure is not None:
        from esper_ab.report.figures.external import external_figure, write_figure  # as above

        write_figure(external_figure(verdicts), figure)
    if json:
        return external_json(verdicts) + "\n"
    return typeable(render_text(external_report(verdicts), in_full=verbose))
