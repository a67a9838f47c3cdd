"""The text of a plan for runs done elsewhere: the runs to do, the looks and the rule."""

from __future__ import annotations

from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.visible import visible
from esper_ab.contracts.wording import counted
from esper_ab.design.any_shape_text import price_line
from esper_ab.report.tables.table import Table
from esper_ab.report.text import paragraph, written
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.rule_sentence import rule_sentence
from esper_ab.verdict.scale import MEAN


def render_plan(plan: AnalysisPlan, file: str) -> str:
    """Describe a plan that was written to `file`: the runs to do, the looks, and the rule."""
    tasks = [task for task in plan.tasks if task]
    parts = [f"{file}: {_runs_to_do(plan)}"]
    if plan.cells:
        parts.append(paragraph(_choosing_runs(plan), ""))
    if tasks:
        parts.append(paragraph(f"Tasks: {', '.join(tasks)}, and their mean in units of each margin.", ""))
    parts.append(paragraph(_margins(plan), ""))
    parts.append(paragraph(rule_sentence(plan.design), ""))
    parts += [paragraph(line, "") for line in _prices(plan)]
    if plan.design.boundaries:
        parts.append(written(_looks_to_come(plan)))
    if tasks:
        header = "group,task,seed,outcome"
    elif plan.cells:
        header = "group,cell,seed,outcome"
    else:
        header = "group,seed,outcome"
    rows = paragraph(f"One row per run, with the header {header}; a run that failed has an empty outcome. Then:", "")
    command = f"{shell_command('judge', file)} RESULTS.csv"
    parts.append(f"{rows}\n  {command}")
    digest = (
        f"sha256 {plan.digest}: if published before the first run, in a commit or a dated message, it shows that "
        "the plan came first."
    )
    parts.append(paragraph(digest, ""))
    return visible("\n\n".join(parts)) + "\n"


def _runs_to_do(plan: AnalysisPlan) -> str:
    seeds = f"{counted(len(plan.replicates), 'seed')} ({plan.replicates[0]} to {plan.replicates[-1]})"
    runs = len(plan.groups) * len(plan.replicates) * len(plan.scales)
    return f"{', '.join(plan.groups)}, {seeds}, {counted(runs, 'run')} at most"


def _choosing_runs(plan: AnalysisPlan) -> str:
    """Describe the runs that choose a cell for each group."""
    cells = ", ".join(plan.cells)
    choosing = ", ".join(plan.choosing)
    runs = len(plan.groups) * len(plan.cells) * len(plan.choosing)
    return (
        f"Before that each group runs in every cell ({cells}) with the seeds {choosing}, {runs} runs; `judge` then "
        "names the cell in which each group is judged."
    )


def _margins(plan: AnalysisPlan) -> str:
    """Describe the margin of every scale, and the outcomes that stand for lost runs if there are any."""
    margins = []
    worst_words = []
    for scale in plan.scales:
        task_prefix = f"{scale.task}: " if scale.task else ""
        margin = scale.outcome.difference(f"{scale.margin:g}")
        margins.append(f"{task_prefix}{margin} ({scale.outcome.better} is better)")
        if scale.worst is not None:
            task_suffix = f" in {scale.task}" if scale.task else ""
            worst_words.append(scale.outcome.value(f"{scale.worst:g}") + task_suffix)
    text = f"Margin: {', '.join(margins)}."
    if worst_words:
        text += f" Lost runs of a group that is called better count as {', '.join(worst_words)}."
    return text


def _prices(plan: AnalysisPlan) -> list[str]:
    """Return what claims for any shape cost in every task; [] if no claim is to hold for any shape."""
    lines: dict[str, str] = {}
    for contrast in plan.design.comparisons:
        line = price_line(plan.design_of(contrast))
        if line and contrast.task != MEAN:
            lines[contrast.task] = f"{contrast.task}: {line}" if contrast.task else line
    return list(lines.values())


def _looks_to_come(plan: AnalysisPlan) -> Table:
    bounds = plan.design.boundaries[0].nominal_p
    rows = []
    for number_of_look, (replicates, bound) in enumerate(zip(plan.design.looks, bounds, strict=True), start=1):
        last_replicate = plan.replicates[replicates - 1]
        rows.append((str(number_of_look), str(replicates), last_replicate, f"p <= {bound:.2g}"))
    return Table("Looks", ("look", "seeds", "the last seed", "bound"), tuple(rows), words=0)
