"""The report of experiments of one question on different rng seeds: their joint answer, and each by its own plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from esper_ab.contracts.wording import counted, listed, n_pairs
from esper_ab.report.confirmation import confirmations
from esper_ab.report.content import Content, against
from esper_ab.report.document import Document, Figures, Node, Paragraphs, Section, Verdicts
from esper_ab.report.external import groups_table, heading, mean_first
from esper_ab.report.external import verdicts as verdicts_on
from esper_ab.report.tables.comparison import cards_of
from esper_ab.report.tables.groups import results_table
from esper_ab.report.tables.table import NONE, Table, number, signed, span
from esper_ab.report.together import ContrastTogether, ExperimentAlone, Together
from esper_ab.report.verdict_json import comparison_json, indented
from esper_ab.report.verdicts import verdicts
from esper_ab.stats.random_effects import LEAST_EXPERIMENTS, RandomEffects
from esper_ab.stats.text import p_text, percent
from esper_ab.verdict.comparison import Comparison

SCHEMA = 2
_UNPLANNED = (
    "EXPLORATORY: no plan says that exactly these experiments are pooled. If they were chosen after their results were "
    "seen, false claims are more frequent than alpha."
)


def replications_report(answer: Together) -> Document:
    """Return the report, before any layout; the sentences about all experiments come first."""
    nodes: list[Node] = [
        Paragraphs(confirmations(answer), look="lead"),
        Paragraphs(tuple(_introduction_and_code(answer))),
    ]
    nodes.append(Paragraphs((*answer.question.repeated, *_reasons(answer)), look="caveat"))
    if answer.pooled:
        nodes += _pooled_verdicts(answer)
    nodes += [_effects_table(answer, item) for item in answer.contrasts]
    nodes.append(Section((Figures(partial(_drawings, answer)),)))
    for item in answer.experiments:
        nodes += _verdicts(item)
    nodes.append(Paragraphs(answer.question.differs, "Differs besides the rng seed", "caveat"))
    nodes.append(Section(tuple(map(_outcomes, answer.experiments))))
    title = f"{against(answer.experiments[0].groups)} in {answer.names}"
    return Document(title=title, rest="the same command with -v", nodes=tuple(nodes))


def replications_json(answer: Together) -> str:
    """Render one JSON object; every key is in docs/data.md."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "sentences": confirmations(answer),
        "planned": answer.question.declared,
        "together": list(map(_contrast_json, answer.contrasts)),
        "replications": list(map(_replication, answer.experiments)),
        "repeated": answer.question.repeated,
        "differs": answer.question.differs,
        "code": answer.question.command_code.sentence,
    }
    return indented(document).decode()


def _introduction_and_code(answer: Together) -> Iterator[str]:
    yield _introduction(answer)
    if answer.question.command_code.sentence and answer.question.command_code.same:
        yield answer.question.command_code.sentence


def _introduction(answer: Together) -> str:
    """Say what kind of experiments these are, and how they are combined."""
    rng_seeds = listed([str(item.rng_seed) for item in answer.experiments])
    tasks_words = " on the same tasks" if answer.over_tasks else ""
    start = f"The same groups{tasks_words} with different rng seeds ({rng_seeds}), which share no randomness."
    if answer.pooled and not answer.question.one_plan:
        pooled_tasks = listed(list(dict.fromkeys(item.contrast.task for item in answer.contrasts if item.pooled)))
        return (
            f"{start} Their plans are the same on {pooled_tasks}, so there they are pooled, each task by itself; "
            "elsewhere, and so on the mean over tasks, they differ and are set side by side."
        )
    if answer.pooled:
        return f"{start} Their plan is the same, so they are pooled as one larger experiment."
    if answer.question.one_plan:
        return f"{start} Their plan is the same; they are pooled when all have ended."
    if any(item.mean is not None for item in answer.contrasts):
        return f"{start} Their plans differ, so they are not pooled: the mean over experiments is exploratory."
    return (
        f"{start} Their plans differ, so they are set side by side; a mean over experiments takes {LEAST_EXPERIMENTS}."
    )


def _reasons(answer: Together) -> Iterator[str]:
    """Yield why the answer is exploratory or not there yet."""
    if not answer.question.command_code.same:
        yield answer.question.command_code.sentence
    if not answer.contrasts:
        yield "No two groups are compared by all of these plans, so nothing is said about all experiments together."
    if answer.unfinished:
        verb = "has" if len(answer.unfinished) == 1 else "have"
        yield f"{listed(answer.unfinished)} {verb} not ended, so nothing is said about all of them together."
    if answer.pooled and answer.exploratory:
        yield _UNPLANNED
    if answer.question.missing:
        verb = "is" if len(answer.question.missing) == 1 else "are"
        yield f"{listed(answer.question.missing)} {verb} pooled with these by plan, but not named here."
    for item in answer.contrasts:
        if item.pooled is not None and item.pooled.disagrees and item.pooled.disagreement is not None:
            design = item.pooled.comparison.design
            means = ", ".join(design.difference(mean) for mean in item.pooled.means)
            yield (
                f"The experiments differ by more than their seeds explain ({means}; p "
                f"{p_text(item.pooled.disagreement)}): something else changed between them."
            )


def _pooled_verdicts(answer: Together) -> Iterator[Node]:
    """Yield the pooled verdicts, task by task, and what was paid for the looks already taken."""
    by_task: dict[str, list[Comparison]] = {}
    for item in answer.contrasts:
        if item.pooled is not None:
            by_task.setdefault(item.contrast.task, []).append(item.pooled.comparison)
    mark = "exploratory " if answer.exploratory else ""
    for task, comparisons in by_task.items():
        cards, shared_warnings = cards_of(comparisons, mark)
        pairs = max(len(comparison.pairs) for comparison in comparisons)
        place = f"{counted(len(answer.experiments), 'experiment')} together, {n_pairs(pairs)}"
        if task:
            place = f"{heading(task)}: {place}"
        yield Verdicts(cards, comparisons[0].question.scope, shared_warnings, place)
    yield Paragraphs((_rule(answer),), "Rule of the pooled answer")


def _rule(answer: Together) -> str:
    """Say how the pooled answer was reached."""
    pooled_items = [(item.contrast, item.pooled) for item in answer.contrasts if item.pooled is not None]
    first_contrast, pooled = pooled_items[0]
    design = pooled.comparison.design
    if design.anytime_after is not None:
        return f"The anytime-valid t over all pairs, at an e-value of {design.evidence:g}."
    count = sum(contrast.task == first_contrast.task for contrast, _ in pooled_items)
    alpha_words = f"alpha {answer.experiments[0].alpha:g}"
    share = design.alpha * count
    each_words = f", {design.alpha:.2g} for each of {count} comparisons" if count > 1 else ""
    if answer.over_tasks and answer.question.one_plan:
        share = design.alpha
        each_words = f", which the {len(pooled_items)} comparisons on tasks and on their mean share, as in each launch"
    elif answer.over_tasks:
        alpha_words = "the part of alpha that a task has by itself"
    sentences = [
        f"One look at all pairs. {counted(pooled.experiments, 'experiment')} get {share:.3g} of {alpha_words}"
        f"{each_words}: each further experiment halves it, so the number of experiments may depend on results."
    ]
    saved_pairs = max(item.saved_pairs for _, item in pooled_items)
    if saved_pairs:
        sentences.append(
            f"The standard error counts the {n_pairs(saved_pairs)} that early stops saved, because a stop favours "
            "large differences."
        )
    return " ".join(sentences)


def _effects_table(answer: Together, item: ContrastTogether) -> Table:
    """Build the table of one comparison in every experiment and over all of them."""
    design = item.effects[0].comparison.design
    rows = list[tuple[str, ...]]()
    for effect in item.effects:
        interval = NONE if effect.interval is None else span(*effect.interval, design.digits)
        pairs = str(effect.comparison.used)
        rows.append((effect.name, effect.verdict, pairs, signed(effect.estimate, design.digits), interval))
    note = ""
    if item.pooled is not None:
        comparison = item.pooled.comparison
        mark = "exploratory " if answer.exploratory else ""
        interval = span(comparison.low, comparison.high, design.digits)
        pairs = str(len(comparison.pairs))
        rows.append(
            ("pooled", f"{mark}{comparison.verdict}", pairs, signed(comparison.estimate, design.digits), interval)
        )
    elif item.mean is not None:
        interval = span(item.mean.low, item.mean.high, design.digits)
        rows.append(("random-effects mean", "", "", signed(item.mean.mean, design.digits), interval))
        note = _heterogeneity(item.mean, design.outcome.apart)
    unit = f", {design.outcome.apart}" if design.outcome.apart else ""
    task_words = f" ({item.contrast.task})" if item.contrast.task else ""
    return Table(
        f"{item.contrast.a} - {item.contrast.b} in every experiment{task_words}",
        ("experiment", "verdict", "pairs", f"effect{unit}", "interval"),
        tuple(rows),
        note=note,
        words=2,
    )


def _heterogeneity(mean: RandomEffects, unit: str) -> str:
    """Describe how much the experiments differ, and how the mean was computed."""
    test = f"Q {number(mean.q)} on {mean.df} degrees of freedom, p {p_text(mean.q_p)}"
    if mean.tau:
        tau = f"{number(mean.tau)} {unit}".rstrip()
        share = percent(round(mean.i_squared, 2))
        varies = f"The true difference varies between experiments with an SD (tau) of about {tau}; I^2 {share}; {test}."
    else:
        varies = f"The experiments differ by no more than their own noise explains (tau 0; I^2 0 %; {test})."
    interval = f"{percent(mean.level)} interval of Knapp and Hartung"
    return f"{varies} The mean has the {interval}, with tau by Paule and Mandel; it decides nothing."


def _drawings(answer: Together) -> list[Any]:
    from esper_ab.report.figures.forest import forest_drawing  # needs matplotlib, which text does not

    drawing = forest_drawing(answer)
    return [] if drawing is None else [drawing]


def _contrast_json(item: ContrastTogether) -> dict[str, Any]:
    pooled = None
    if item.pooled is not None:
        pooled = {
            "experiments": item.pooled.experiments,
            "planned_pairs": item.pooled.planned_pairs,
            "means": item.pooled.means,
            "disagreement_p": item.pooled.disagreement,
            "comparison": comparison_json(item.pooled.comparison),
        }
    return {
        "task": item.contrast.task,
        "a": item.contrast.a,
        "b": item.contrast.b,
        "effects": [
            {
                "experiment": effect.name,
                "verdict": effect.verdict,
                "estimate": effect.estimate,
                "se": effect.se,
                "low": None if effect.interval is None else effect.interval[0],
                "high": None if effect.interval is None else effect.interval[1],
            }
            for effect in item.effects
        ],
        "pooled": pooled,
        "random_effects": None if item.mean is None else msgspec.to_builtins(item.mean),
    }


def _replication(item: ExperimentAlone) -> dict[str, Any]:
    return {
        "experiment": item.name,
        "rng_seed": item.rng_seed,
        "replicates": item.seeds,
        "state": item.state.word,
        "comparisons": [
            {"task": comparison.question.task, **comparison_json(comparison)} for comparison in item.comparisons
        ],
    }


def _verdicts(item: ExperimentAlone) -> Iterator[Node]:
    """Yield the verdicts of an experiment by its own plan; those over several tasks are below the first screen."""
    place = f"{item.name} (rng seed {item.rng_seed}, {counted(item.seeds, 'seed')}), by its own plan"
    if isinstance(item.whole, Content):
        yield replace(verdicts(item.whole), where=place)
    else:
        own_answer = item.whole.judged
        own_verdicts = (verdicts_on(own_answer, task) for task in mean_first(own_answer))
        yield Section(tuple(replace(node, where=f"{node.where}: {place}") for node in own_verdicts))
    if not item.state.complete:
        yield Paragraphs((f"{item.name}: {item.state.warning}. {item.state.sentence}",), look="caveat")


def _outcomes(item: ExperimentAlone) -> Table:
    """Return the table of an experiment's outcomes by group."""
    if isinstance(item.whole, Content):
        return replace(results_table(item.whole), title=f"Outcome by group of {item.name}")
    return replace(groups_table(item.whole.judged), title=f"Outcome by group of {item.name}")
