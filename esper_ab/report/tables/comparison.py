"""Tables of comparisons: every statistic, the interim looks, the outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from esper_ab.contracts.wording import capital, n_pairs, named
from esper_ab.design.design import Design
from esper_ab.report.content import Content
from esper_ab.report.document import Card
from esper_ab.report.tables.moderation import shared_sd, test_name
from esper_ab.report.tables.table import NONE, Table, number, signed, span
from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.proportions import Proportions
from esper_ab.stats.text import p_beside, p_text, percent
from esper_ab.verdict import sentences
from esper_ab.verdict.caveats import context_of, routine, statistic_caveats
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.descriptive import statistics
from esper_ab.verdict.headline import alike, headline_of
from esper_ab.verdict.look import Look
from esper_ab.verdict.not_worse_words import not_worse_test
from esper_ab.verdict.verdict import SMALL

Row = tuple[str, str]


def overview_table(design: Design, comparisons: Sequence[Comparison]) -> Table:
    """Build the table of all comparisons, with effect, intervals and verdict; empty for a single comparison.

    The deciding interval of each row has its own level; the simultaneous intervals hold all at once.
    """
    rows: tuple[tuple[str, ...], ...] = ()
    if len(comparisons) > 1:
        rows = tuple(_overview_row(design, item) for item in comparisons)
    note = ""
    if any(item.simultaneous[:2] != (None, None) for item in comparisons):
        note = (
            f"All at once: with {percent(1.0 - design.alpha)} confidence each of these intervals contains its "
            "difference, at its last look."
        )
    unit = f", {design.outcome.apart}" if design.outcome.apart else ""
    return Table(
        "All comparisons",
        rows=rows,
        words=2,
        columns=("comparison", "verdict", f"effect{unit}", "interval", "its level", "all at once", "used"),
        note=note,
    )


def _overview_row(design: Design, item: Comparison) -> tuple[str, ...]:
    level = NONE if item.low is None else percent(item.level.confidence)
    used_words = item.counted(0) if item.samples else f"{item.used} of {n_pairs(len(item.pairs))}"
    return (
        _difference(item),
        str(item.verdict),
        signed(item.estimate, design.digits),
        _span(design, item.low, item.high),
        level,
        _span(design, *item.simultaneous[:2]),
        used_words,
    )


def deciding_table(comparison: Comparison) -> Table:
    """Build the table of the numbers behind one comparison's verdict, with the verdict's sentence but not its scope."""
    rows = (*_deciding(comparison), *_equivalence(comparison), *_one_sided_test(comparison), *_budget(comparison))
    sentence = comparison.sentence.removesuffix(f" Conditional on {comparison.question.scope}.")
    caveats = [text for text in comparison.caveats if text in routine(comparison)]
    text = " ".join((sentence, *caveats))
    return Table(_difference(comparison), ("what decides", "value"), rows, words=2, wide=False, note=text, none=text)


def beside_tables(comparisons: Sequence[Comparison]) -> Iterator[Table]:
    """For each comparison, build the table of the statistics that decide nothing; each caveat on these appears once."""
    seen_texts: set[str] = set()
    for item in comparisons:
        rows = (*_plain(item), *_descriptive(item, "test"), *_descriptive(item, "effect"))
        if rows:
            caveats = statistic_caveats(item)
            title = f"{_difference(item)}: other statistics"
            note = " ".join(text for text in caveats if text not in seen_texts)
            yield Table(title, ("decides nothing", "value"), rows, words=2, wide=False, note=note)
            seen_texts.update(caveats)


def _difference(comparison: Comparison) -> str:
    return f"{comparison.question.a} - {comparison.question.b}"


_APART = 3  # most comparisons with a card each; if there are more, only the tables have all their numbers


def cards_of(comparisons: Sequence[Comparison], mark: str = "") -> tuple[tuple[Card, ...], tuple[str, ...]]:
    """Return a card per comparison, and the caveats that several comparisons share (none for a single comparison).

    If there are more than three comparisons, those without a claim that end alike share a card. `mark` is written
    before each verdict, for example "exploratory ".
    """
    if len(comparisons) > _APART:
        return _folded(comparisons, mark), tuple(_named_caveats(comparisons))
    shared_warnings = _shared_warnings(comparisons)
    cards = []
    for item in comparisons:
        own_warnings = tuple(text for text in item.warnings if text not in shared_warnings)
        cards.append(Card(f"{mark}{item.verdict}", item.headline, own_warnings))
    return tuple(cards), shared_warnings


def _shared_warnings(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    if len(comparisons) < 2:
        return ()
    first_item, *other_items = comparisons
    return tuple(text for text in first_item.warnings if all(text in other_item.warnings for other_item in other_items))


def _folded(comparisons: Sequence[Comparison], mark: str) -> tuple[Card, ...]:
    items_by_key: dict[tuple[str, ...], list[Comparison]] = {}
    for item in comparisons:
        key = alike(item) or (str(item.verdict), item.question.a, item.question.b)
        items_by_key.setdefault(key, []).append(item)
    order = list(dict.fromkeys(item.verdict for item in comparisons))
    by_verdict = sorted(items_by_key.values(), key=lambda items: order.index(items[0].verdict))
    return tuple(_card(items, mark) for items in by_verdict)


def _card(items: Sequence[Comparison], mark: str) -> Card:
    first_item = items[0]
    headline = first_item.headline
    if len(items) > 1:
        headline = headline_of([(item.question.a, item.question.b) for item in items], first_item)
    return Card(f"{mark}{first_item.verdict}", headline)


def _named_caveats(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield each caveat of many comparisons once, with their groups unless it applies to all."""
    pairs: dict[str, list[tuple[str, str]]] = {}
    for item in comparisons:
        for text in item.warnings:
            pairs.setdefault(text, []).append((item.question.a, item.question.b))
    for text, concerned_pairs in pairs.items():
        if len(concerned_pairs) == len(comparisons):
            yield text
        else:
            yield f"{capital(named(concerned_pairs))}: {text}"


def _deciding(comparison: Comparison) -> Iterator[Row]:
    design = comparison.design
    if comparison.estimate is None:
        return
    direction_words = ", lower is better" if design.outcome.sign < 0.0 else ""
    count_words = comparison.counted(comparison.used)
    yield "effect (deciding)", f"{design.difference(comparison.estimate)}{direction_words}, {count_words} used"
    if comparison.low is not None and comparison.high is not None:
        yield str(comparison.level), _format_interval(design, comparison.low, comparison.high)
    if comparison.last_look is not None and comparison.last_look.any_shape is not None:
        yield "evidence for any shape", f"does not exclude {_format_interval(design, *comparison.last_look.any_shape)}"
    low, high, level = comparison.simultaneous
    if low is not None and high is not None and len(design.comparisons) > 1:
        yield str(level), f"{_format_interval(design, low, high)}, with those of all comparisons at once"
    effect = comparison.effect
    if isinstance(effect, Proportions):
        rows = f"{comparison.question.row}s"
        counts = f"{effect.ones_a} of {effect.runs_a} against {effect.ones_b} of {effect.runs_b} {rows}"
        yield effect.name, f"{counts} at {effect.one:g}, p {p_text(effect.p)}"
    elif effect is not None and effect.t is not None and effect.p is not None:
        noun = "degree" if effect.df == 1 else "degrees"
        degrees = f"{round(effect.df, 1):g} {noun} of freedom"
        yield effect.name or test_name(comparison), f"t = {effect.t:.2f} with {degrees}, p {p_text(effect.p)}"
    if not isinstance(effect, AdjustedDifference):
        return
    if effect.sd is not None:
        yield "SD of the differences", design.size(effect.sd)
    yield from shared_sd(comparison)
    for position in effect.positions:
        interval = f"95 % interval {span(position.low, position.high, design.digits)}"
        yield f"order {position.position} against 0", f"{design.difference(position.mean)}, {interval}"


def _format_interval(design: Design, low: float, high: float) -> str:
    return design.outcome.difference(_span(design, low, high))


def _span(design: Design, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return NONE
    return sentences.span(low, high, design)


def _plain(comparison: Comparison) -> Iterator[Row]:
    plain_effect = comparison.plain
    design = comparison.design
    if plain_effect is not None:
        text = design.difference(plain_effect.mean)
        if plain_effect.low is not None:
            text += (
                f", {percent(plain_effect.level)} interval {span(plain_effect.low, plain_effect.high, design.digits)}"
            )
        if plain_effect.p is not None:
            text += f", p {p_text(plain_effect.p)}"
        yield "plain paired t, one look", text


def _descriptive(comparison: Comparison, kind: str) -> Iterator[Row]:
    for name, statistic in statistics().items():
        result = comparison.descriptive[name]
        if statistic.kind == kind and result is not None:
            text = statistic.show(result, context_of(comparison))
            if text:
                yield statistic.label, text


def _equivalence(comparison: Comparison) -> Iterator[Row]:
    test = comparison.equivalence
    if test is not None:
        if not test.reached:
            claim = "not shown"
        elif comparison.verdict in SMALL:
            claim = "shown"
        else:
            claim = "not claimed"
        p, bound = p_beside(test.p, test.p_bound)
        text = f"{claim}: p {p} of two one-sided tests, needs p <= {bound}"
        yield f"equivalence within {comparison.design.margin_words}", text


def _one_sided_test(comparison: Comparison) -> Iterator[Row]:
    """Yield the one-sided test of a plan that asks whether a group is not worse."""
    look = comparison.last_look
    if look is not None and look.non_inferiority is not None:
        result = "shown" if look.shows_not_worse else "not shown"
        yield f"not worse by {comparison.design.margin_words}", f"{result}: {not_worse_test(comparison)}"


def _budget(comparison: Comparison) -> Iterator[Row]:
    yield from _resolution(comparison)
    yield from _losses(comparison)
    unseen_collapse = comparison.unseen
    if unseen_collapse is not None:
        if unseen_collapse.worst is None:
            effect = "no worst outcome is declared"
        else:
            unit = "run" if comparison.samples else "pair"
            claim_words = "the claim is still made" if unseen_collapse.survives else "the claim is not made"
            effect = f"with one more {unit} of that kind {claim_words}"
        yield "collapses unseen", f"up to {percent(unseen_collapse.rate)} of runs; {effect}"


def _resolution(comparison: Comparison) -> Iterator[Row]:
    """Yield the pairs that the margin needs, and the smallest difference that these pairs resolve."""
    design = comparison.design
    pairs_needed = comparison.pairs_needed
    if pairs_needed is not None:
        text = f"{pairs_needed.pairs} (80 % range {pairs_needed.low} to {pairs_needed.high})"
        new_plan_pairs = comparison.pairs_anew
        if new_plan_pairs is not None and new_plan_pairs.pairs < pairs_needed.pairs:
            text = (
                f"{text} with an extension; {new_plan_pairs.pairs} ({new_plan_pairs.low} to {new_plan_pairs.high}) in "
                "a new plan"
            )
        purpose = f"for {design.margin_words}" if design.non_inferiority is None else "to show that it is not worse"
        yield f"pairs {purpose}, 80 % power", text
    smallest_difference = comparison.smallest_resolvable
    if smallest_difference is not None:
        plan_words = "in this plan"
        if comparison.most_pairs is not None:
            plan_words = f"within {n_pairs(comparison.most_pairs)}"
        claim = design.non_inferiority is not None
        yield (
            "smallest margin for that claim" if claim else "smallest difference resolvable",
            f"{design.size(smallest_difference)} {plan_words}, 80 % power, at the SD seen here",
        )


def _losses(comparison: Comparison) -> Iterator[Row]:
    losses = comparison.lost
    if losses.replicates:
        a = comparison.question.a
        b = comparison.question.b
        text = f"{losses.a} of {a}, {losses.b} of {b}"
        if losses.paired:
            alone_a, alone_b = losses.cancelled
            text += f"; without a partner: {alone_a} of {a}, {alone_b} of {b}"
        yield "runs lost", text
    imputation = comparison.imputed
    if imputation is not None:
        claim_words = "the claim stands" if imputation.survives else "the claim does not stand"
        mean = NONE if imputation.mean is None else comparison.design.difference(imputation.mean)
        yield "with lost runs counted against it", f"{mean}: {claim_words}"


def looks_table(comparisons: Sequence[Comparison]) -> Table:
    """Build the table of the interim looks taken so far, with the bound of each look."""
    rows = []
    unit = f"{comparisons[0].design.unit}s"
    for item in comparisons:
        rows += [_look_row(item, look) for look in item.progress.looks]
    return Table(
        "Looks",
        (
            "comparison",
            unit,
            "pairs" if unit == "seeds" else "complete",
            "alpha",
            "bound",
            "reached",
            "effect",
            "repeated interval",
            "decision",
        ),
        tuple(rows),
        note="Alpha: the comparison's share of the error rate at that look; the level of its interval is 1 - alpha.",
        none="None so far: no verdict is given before the first look of the plan.",
    )


def _look_row(item: Comparison, look: Look) -> tuple[str, ...]:
    bound, reached_words = _test(look)
    return (
        _difference(item),
        str(look.replicates),
        str(look.pairs),
        f"{look.alpha:.3g}",
        bound,
        reached_words,
        signed(look.mean, item.design.digits),
        _span(item.design, look.low, look.high),
        _decided(look),
    )


def _test(look: Look) -> tuple[str, str]:
    """Return the bound and the value reached: of p at a planned look, of the e-value under the anytime-valid rule."""
    if look.bound_e is not None:
        return f"e >= {look.bound_e:.3g}", NONE if look.e is None else f"e = {look.e:.3g}"
    if look.bound_p is None:
        return NONE, NONE if look.p is None else f"p {p_text(look.p)}"
    if look.p is None:
        return f"p <= {look.bound_p:.2g}", NONE
    p_words, bound = p_beside(look.p, look.bound_p)
    return f"p <= {bound}", f"p {p_words}"


def _decided(look: Look) -> str:
    if look.futile:
        return "stopped for futility"
    if look.crossed:
        return "crossed"
    if look.shows_not_worse:
        return "not worse"
    if look.equivalent:
        return "equivalent"
    return "open"


def outcomes_table(content: Content) -> Table:
    """Build the table of outcomes by replicate; a single comparison's table includes the differences."""
    design = content.design
    only_comparison = content.comparisons[0] if len(content.comparisons) == 1 else None
    columns = ["seed", *content.groups]
    if only_comparison is not None:
        columns.append(_difference(only_comparison))
    by_replicate = _outcomes_by_replicate(content)
    rows = []
    for replicate in sorted(by_replicate):
        outcomes = by_replicate[replicate]
        if all(outcome is None for outcome in outcomes.values()):
            continue
        cells = [str(replicate)]
        cells += [number(outcomes.get(group), design.digits) for group in content.groups]
        if only_comparison is not None:
            a = outcomes.get(only_comparison.question.a)
            b = outcomes.get(only_comparison.question.b)
            difference = None if a is None or b is None else a - b
            cells.append(signed(difference, design.digits))
        rows.append(tuple(cells))
    if content.experiment.unpaired:
        randomness_words = "Every run has its own randomness."
    else:
        randomness_words = "A seed's runs share their randomness."
    return Table(
        "Outcomes by seed",
        tuple(columns),
        rows=tuple(rows),
        wide=len(content.groups) > 2,
        note=f"Outcomes: {design.outcome.title}. {randomness_words}",
        none="No run has its outcome yet.",
    )


def _outcomes_by_replicate(content: Content) -> dict[int, dict[str, float | None]]:
    """Return [seed][group], with None for an outcome that is not known."""
    by_replicate: dict[int, dict[str, float | None]] = {}
    for group in content.groups:
        for run in content.of_group(group):
            by_replicate.setdefault(run.run.replicate, {})[group] = run.outcome
    return by_replicate
