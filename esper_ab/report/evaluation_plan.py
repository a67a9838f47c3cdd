"""The text of a plan for the evaluation of two checkpoints: the trials, the looks, and what they can show."""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible
from esper_ab.design.exact_looks import MOST_REPLICATES, Chances, Shape, performance, replicates_needed, worst_error
from esper_ab.report.tables.table import Table
from esper_ab.report.text import paragraph, written
from esper_ab.stats.text import percent
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.rule_sentence import rule_sentence


def render_evaluation(plan: AnalysisPlan, file: str, order: str, chances: Sequence[Chances]) -> str:
    """Describe a plan in `file` and its order of trials in `order`, with the power at `chances`."""
    design = plan.design
    unit = design.unit
    a, b = plan.groups
    count = len(plan.replicates)
    trials_words = f"the same {count} {unit}s for both" if plan.paired else f"{count} {unit}s each, which form no pairs"
    error = worst_error(_shape(plan), design.looks, design.boundaries[0].nominal_p)
    worst_words = design.outcome.value(f"{design.worst:g}")
    lines = (
        f"{file}, {order}: checkpoints {a} and {b}, {trials_words}; at most {2 * count} trials",
        f"Margin: {design.margin_words} ({design.outcome.better} is better). A lost outcome of a checkpoint that is "
        f"called better counts as {worst_words}.",
        f"{rule_sentence(design)} False claims: at most {percent(error)}, whatever chance the two share.",
    )
    parts = [paragraph(line, "") for line in lines]
    parts += [written(_looks(plan)), written(_power(plan, chances))]
    parts.append(
        paragraph(
            f"{order} hides the groups behind the arms A and B; {file} has the key. Let someone else load the "
            "checkpoints as A and B, run the trials in this order, and enter each outcome, 1 or 0, in its row; leave a "
            "lost one empty. After each look, or at any time:",
            "",
        )
        + f"\n  {shell_command('judge', file, order)}"
    )
    parts.append(
        paragraph(
            f"sha256 {plan.digest}: if published before the first trial, in a commit or a dated message, it shows that "
            "the plan came first.",
            "",
        )
    )
    return visible("\n\n".join(parts)) + "\n"


def evaluation_tree(plan: AnalysisPlan, file: str, order: str, chances: Sequence[Chances]) -> dict[str, object]:
    """Return what `--json` prints."""
    design = plan.design
    bounds = design.boundaries[0].nominal_p
    powers = []
    for pair in chances:
        rates = performance(_shape(plan), design.looks, bounds, pair)
        row: dict[str, object] = {"chances": pair.shares, "power": max(rates.a, rates.b)}
        row |= {"expected": rates.replicates, "needed": replicates_needed(_shape(plan), pair, design.alpha)}
        powers.append(row)
    return {
        "file": file,
        "order": order,
        "sha256": plan.digest,
        "looks": design.looks,
        "bounds": bounds,
        "error": worst_error(_shape(plan), design.looks, bounds),
        "power": powers,
    }


def _shape(plan: AnalysisPlan) -> Shape:
    return "paired" if plan.paired else "unpaired"


def _looks(plan: AnalysisPlan) -> Table:
    rows = []
    bounds = plan.design.boundaries[0].nominal_p
    for number, (look, bound) in enumerate(zip(plan.design.looks, bounds, strict=True), start=1):
        bound_text = f"p <= {bound:.2g}" if bound else "none: too few"
        rows.append((str(number), str(look), str(2 * look), bound_text))
    columns = ("look", f"{plan.design.unit}s for each arm", "after trial", "bound")
    return Table("Looks", columns, tuple(rows), words=0)


def _power(plan: AnalysisPlan, chances: Sequence[Chances]) -> Table:
    """Return the table of the power, by exact enumeration."""
    unit = f"{plan.design.unit}s"
    rows = []
    for pair in chances:
        rates = performance(_shape(plan), plan.design.looks, plan.design.boundaries[0].nominal_p, pair)
        share_a, share_b = pair.shares
        power = percent(max(rates.a, rates.b))
        needed_words = replicates_needed(_shape(plan), pair, plan.design.alpha) or f"over {MOST_REPLICATES}"
        rows.append((f"{share_a:.4g} and {share_b:.4g}", power, f"{rates.replicates:.1f}", str(needed_words)))
    note = "By exact enumeration of all outcomes."
    if plan.paired:
        note += " The outcomes of an item have the correlation --correlation (0 if not given)."
    columns = ("chances of success", "finds the better", f"{unit} used, mean", f"{unit} for 80 %")
    return Table("Power", columns, tuple(rows), note, words=1)
