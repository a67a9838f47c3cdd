"""Caveats on a verdict: progress, losses, the design, and descriptive statistics. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.contracts.wording import n_pairs
from esper_ab.stats.floats import exact_sum
from esper_ab.stats.pair import Pairs, ends
from esper_ab.stats.statistic import ComparisonContext
from esper_ab.verdict.any_shape_words import any_shape_caveats
from esper_ab.verdict.descriptive import statistics
from esper_ab.verdict.evidence import Evidence
from esper_ab.verdict.finding import BESIDE_THE_CODE, LOST_SCORES, MIXED_CODE, OLDER_RUNS, ROWS, SEED
from esper_ab.verdict.further_pairs import looks_to_come
from esper_ab.verdict.level_caveats import level_caveats
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.sentences_on_losses import collapse_caveats, loss_caveats
from esper_ab.verdict.shapes import shape_caveats
from esper_ab.verdict.undecided import undecided_caveats
from esper_ab.verdict.verdict import CLAIMS, DIFFERENT, Verdict

_POSITIONS = "Not adjusted for device and start order: no record can depend on them here."
_FEW = 10  # from this number of runs on, unequal numbers cost little


def caveats(evidence: Evidence) -> tuple[str, ...]:
    """Write the caveats on a verdict, each in one or two sentences."""
    if not evidence.data:
        return (*_progress_caveats(evidence), *loss_caveats(evidence), *_row_caveats(evidence))
    return (
        *level_caveats(evidence),
        *_progress_caveats(evidence),
        *_later_pairs_caveats(evidence),
        *loss_caveats(evidence),
        *_row_caveats(evidence),
        *collapse_caveats(evidence),
        *shape_caveats(evidence),
        *any_shape_caveats(evidence),
        *undecided_caveats(evidence),
        *_margin_caveats(evidence),
        *_data_caveats(evidence),
        *(finding.sentence for finding in evidence.findings if finding.kind in (MIXED_CODE, OLDER_RUNS)),
        *_design_caveats(evidence),
        *_number_caveats(evidence),
    )


def _progress_caveats(evidence: Evidence) -> Iterator[str]:
    planned_pairs = evidence.question.planned
    complete_pairs = len(evidence.pairs)
    if evidence.progress.finished or complete_pairs >= planned_pairs or evidence.about_checkpoints:
        return
    complete_words = f"{complete_pairs} of {planned_pairs} planned pairs are complete."
    if looks_to_come(evidence):
        yield (
            f"{complete_words} Only planned looks give a verdict: looking at other times and stopping at a good moment "
            "raises the rate of false claims."
        )
    else:
        yield complete_words  # under the anytime-valid rule, one may look after every pair


def _later_pairs_caveats(evidence: Evidence) -> Iterator[str]:
    """Give the mean of the pairs after the decision, and say whether they contradict it."""
    progress = evidence.progress
    difference = evidence.design.difference
    later_pairs = progress.later
    if not later_pairs:
        return
    mean = _mean_difference(later_pairs)
    overall_mean = _mean_difference(evidence.pairs[: evidence.used].followed_by(later_pairs))
    if progress.decision == "equivalent":
        contradicts = abs(mean) >= evidence.design.margin
    elif progress.decision == "not-worse":
        contradicts = mean * evidence.question.sign <= -evidence.design.margin
    else:
        contradicts = mean * progress.direction < 0.0
    total = n_pairs(evidence.used + len(later_pairs))
    if len(later_pairs) == 1:
        effect = "contradicts it" if contradicts else "is not used"
        yield (
            f"The pair after the decision {effect}: its difference is {difference(mean)}, the mean of all {total} "
            f"{difference(overall_mean)}."
        )
        return
    effect = "contradict it" if contradicts else "are not used"
    yield (
        f"The {n_pairs(len(later_pairs))} after the decision {effect}: their mean is {difference(mean)}, that of all "
        f"{total} "
        f"{difference(overall_mean)}."
    )


def _mean_difference(pairs: Pairs) -> float:
    return exact_sum(pairs.differences) / len(pairs)


def _row_caveats(evidence: Evidence) -> Iterator[str]:
    """Tell what is unusual about the rows of a table, and what may be missing from it."""
    question = evidence.question
    yield from (finding.sentence for finding in evidence.findings if finding.kind in (ROWS, LOST_SCORES))
    if question.recorded or evidence.samples is None or evidence.verdict not in CLAIMS or evidence.about_checkpoints:
        return
    samples = evidence.samples
    losses = evidence.lost
    counts = {question.a: len(samples.a) + losses.a, question.b: len(samples.b) + losses.b}
    if counts[question.a] != counts[question.b]:
        smaller_group, larger_group = sorted(counts, key=lambda group: counts[group])
        yield (
            f"{smaller_group} has {counts[smaller_group]} rows and {larger_group} {counts[larger_group]}: if runs of "
            f"{smaller_group} failed and left "
            "no row, this compares survivors; give each failed run a row with an empty outcome."
        )


def _margin_caveats(evidence: Evidence) -> Iterator[str]:
    """Say that the margin is at least as large as the spread of all outcomes, as it is in a wrong unit."""
    if evidence.verdict not in CLAIMS or evidence.question.task == MEAN:
        return
    limits = ends(evidence.data)
    if max(limits) - min(limits) <= evidence.design.margin:
        low = evidence.design.value(min(limits))
        high = evidence.design.value(max(limits))
        yield (
            f"The margin of {evidence.design.margin_words} is at least as large as the spread of all outcomes "
            f"({low} to {high}): check its unit, unless the outcome varies so little."
        )


def _data_caveats(evidence: Evidence) -> Iterator[str]:
    """Name the deciding test unless it is the paired t-test, and what is unusual about the data."""
    if evidence.proportions is not None:
        adjustment_words = ", not adjusted for device and start order" if evidence.design.adjusted else ""
        success = f"{evidence.proportions.one:g}"
        test_words = "an exact test and Newcombe's interval decide"
        if evidence.design.test == "z":
            test_words = "the pooled z test at exact bounds and the score interval decide"
        yield f"Every outcome is 0 or {success}: {test_words}{adjustment_words}."
    if evidence.samples is not None:
        smaller_count, larger_count = sorted((len(evidence.samples.a), len(evidence.samples.b)))
        if 1 < smaller_count < _FEW and 2 * smaller_count < larger_count:
            rows = f"{evidence.question.row}s"
            yield (
                f"Unequal groups: the {smaller_count} {rows} of the smaller group limit precision, so more {rows} of "
                "the larger "
                "one hardly help."
            )


def _design_caveats(evidence: Evidence) -> Iterator[str]:
    question = evidence.question
    progress = evidence.progress
    design = question.design
    if question.paired:
        yield from (finding.sentence for finding in evidence.findings if finding.kind in (SEED, BESIDE_THE_CODE))
    else:
        yield "Unpaired: the runs of a seed share no randomness, so their pairing is arbitrary."
    if not design.early_stop:
        yield "No early stop: pairs after the deciding look enter the numbers but not the decision."
    if not design.positions_matter:
        yield _POSITIONS
    elif design.positions > 1 and not design.adjusted and evidence.used > 1:
        if design.too_few_to_adjust:
            reason = "too few pairs at the first look"
        else:
            reason = "not estimable in this order"
        yield f"Not adjusted for device and start order: {reason}."
    if progress.standing == "futile":
        yield "Stopped for futility: further pairs might have shown anything, including EQUIVALENT."
    if progress.decision in ("crossed", "not-worse") and progress.decided_at is not None and design.early_stop:
        stopping_words = "early stopping overestimates differences on average."
        if progress.looks[-1].bound_e is not None:
            yield f"It stopped once the evidence sufficed; {stopping_words}"
        elif progress.decided_at < question.planned:
            yield f"It was decided before the planned end; {stopping_words}"


def routine(evidence: Evidence) -> tuple[str, ...]:
    """Return the caveats that describe how experiments of this kind are judged, not this particular result."""
    standing_caveats = (_POSITIONS, *_progress_caveats(evidence))
    if evidence.unseen is not None and evidence.unseen.survives:
        return (*standing_caveats, *collapse_caveats(evidence))
    return standing_caveats


def statistic_caveats(evidence: Evidence) -> tuple[str, ...]:
    """Return the caveats on statistics that decide nothing."""
    context = context_of(evidence)
    texts: list[str] = []
    if evidence.about_checkpoints:
        return ()
    for name, statistic in statistics().items():
        result = evidence.descriptive[name]
        if result is not None:
            texts += statistic.caveats(result, context)
    return tuple(texts)


def warnings(evidence: Evidence) -> tuple[str, ...]:
    """Return the caveats without which the verdict is shown nowhere.

    Caveats on other statistics are left out, and so are those that hold for every experiment of this kind.
    """
    other_caveats = (*statistic_caveats(evidence), *routine(evidence))
    return tuple(text for text in caveats(evidence) if text not in other_caveats)


def context_of(evidence: Evidence) -> ComparisonContext:
    """Return the facts about the comparison that its descriptive statistics may use."""
    question = evidence.question
    verdict = evidence.verdict
    last_look = evidence.last_look
    pairs = evidence.used
    if evidence.samples:
        pairs = max(len(evidence.samples.a), len(evidence.samples.b))
    return ComparisonContext(
        a=question.a,
        b=question.b,
        claimed=verdict in DIFFERENT,
        alpha=last_look.alpha if last_look else question.alpha,
        bound=last_look.bound_p if last_look and last_look.bound_p else question.alpha,
        undecided=verdict is Verdict.INCONCLUSIVE and not evidence.capped_by and not evidence.proportions,
        unit=question.design.outcome.apart,
        digits=question.design.digits,
        pairs=pairs,
        paired=question.paired and evidence.samples is None,
    )


def _number_caveats(evidence: Evidence) -> Iterator[str]:
    is_one_computation = evidence.same_records and not evidence.question.coarse
    if evidence.plain is not None and evidence.plain.sd == 0.0 and not is_one_computation:
        yield from _equal_outcomes_caveats(evidence)
    if evidence.about_checkpoints:
        return  # the statistics that decide nothing take items for independent
    context = context_of(evidence)
    for name, statistic in statistics().items():
        result = evidence.descriptive[name]
        if result is None:
            continue
        contradiction = statistic.contradicts(result, context)
        if contradiction:
            yield contradiction
        yield from statistic.caveats(result, context)


def _equal_outcomes_caveats(evidence: Evidence) -> Iterator[str]:
    """Explain why all pairs have the same difference, unless outcomes vary from seed to seed and it does not."""
    a = evidence.question.a
    b = evidence.question.b
    first_pair = evidence.pairs[0]
    value = evidence.design.value
    check = "look for a coarse or saturated outcome"
    has_records = evidence.question.recorded  # by workers, whose seeds were seen to matter before the first run
    records_words = ", though their records differ" if has_records and not evidence.same_records else ""
    if evidence.constant and not evidence.unmoved:
        return
    if evidence.constant:
        if not has_records:
            check = "check that the seed controls the randomness of these runs"
        yield (
            f"Every outcome of {a} is {value(first_pair.a)} and every one of {b} "
            f"{value(first_pair.b)}{records_words}: {check}."
        )
    elif evidence.unmoved:
        yield f"Every outcome of {a} and {b} is {value(first_pair.a)}{records_words}: {check}."
    else:
        yield f"{a} and {b} have equal outcomes in every pair{records_words}: {check}."
