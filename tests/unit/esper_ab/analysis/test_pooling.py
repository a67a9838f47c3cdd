"""Pooled experiments are judged as one larger experiment, which pays for the looks already taken."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from scipy import stats
from support.journals.replications import ALIKE, APART, SWAPPED, experiment, source, stopped_early
from support.journals.synthetic import Shape

from esper_ab.analysis.analyse import analyse
from esper_ab.analysis.pooling import JoinedExperiment, pool
from esper_ab.journal.fold import fold
from esper_ab.stats.pooled_bound import bound_after_early_stops
from esper_ab.verdict.verdict import Verdict


def pooled(*histories):
    experiments = [
        JoinedExperiment(name=f"e{number}", history=history, names={name: name for name in history.groups})
        for number, history in enumerate(histories)
    ]
    (answer,) = pool(experiments, histories[0].design.comparisons)
    return answer


def history_of(rng_seed, **changes):
    return source(experiment(rng_seed, **changes))[1]


def test_the_pooled_effect_is_the_paired_t_over_all_pairs_at_half_of_alpha():
    first, second = history_of(1, groups=ALIKE), history_of(2, groups=ALIKE, replicates=6)
    answer = pooled(first, second)
    pairs = [analyse(history).comparisons[0].pairs for history in (first, second)]
    differences = np.concatenate([one.differences for one in pairs])
    comparison = answer.comparison
    assert comparison.effect.mean == pytest.approx(differences.mean(), abs=1.0)  # adjusted for positions
    assert len(comparison.pairs) == 12
    assert comparison.plain.mean == pytest.approx(differences.mean())
    assert comparison.last_look.bound_p == 0.025
    assert (comparison.low + comparison.high) / 2 == pytest.approx(comparison.estimate)
    half_width = stats.t.isf(0.0125, comparison.effect.df) * comparison.effect.se
    assert comparison.high - comparison.estimate == pytest.approx(half_width)
    assert str(comparison.level) == "97.5 % interval"


def test_the_order_of_the_experiments_changes_nothing():
    first, second = history_of(1), history_of(2)
    assert pooled(first, second).comparison.estimate == pooled(second, first).comparison.estimate


def test_a_third_experiment_halves_the_share_of_alpha():
    answer = pooled(*(history_of(rng_seed) for rng_seed in (1, 2, 3)))
    assert answer.comparison.last_look.bound_p == 0.0125
    assert answer.experiments == 3


def test_pairs_that_an_early_stop_saved_make_the_bound_stricter():
    whole = experiment(1, replicates=20, groups=APART)
    stopped = fold(stopped_early(replace(whole, rng_seed=2), 14))
    answer = pooled(fold(whole.events()), stopped)
    comparison = answer.comparison
    assert (len(comparison.pairs), answer.planned_pairs, answer.saved_pairs) == (34, 40, 6)
    bound = bound_after_early_stops(0.025, comparison.effect.df, pairs=34, planned_pairs=40)
    assert comparison.last_look.bound_p == pytest.approx(bound)
    assert comparison.last_look.bound_p < 0.025
    assert comparison.verdict is Verdict.BETTER


def test_open_ended_plans_are_pooled_by_the_anytime_valid_t():
    settings = {"open_ended": True}
    answer = pooled(history_of(1, groups=APART, settings=settings), history_of(2, groups=APART, settings=settings))
    look = answer.comparison.last_look
    assert look.bound_e == 20.0
    assert look.replicates == 12
    assert "anytime-valid" in str(answer.comparison.level)


def test_an_extended_experiment_is_pooled_at_the_evidence_of_an_extension():
    extended = history_of(1, groups=APART, extended_by=2)
    answer = pooled(extended, history_of(2, groups=APART))
    assert answer.comparison.last_look.bound_e == 100.0


def test_experiments_with_different_true_effects_are_said_to_disagree():
    assert pooled(history_of(1, groups=APART), history_of(2, groups=SWAPPED)).disagrees
    assert not pooled(history_of(1, groups=APART), history_of(2, groups=APART)).disagrees


def test_an_experiment_that_its_own_audit_blocks_blocks_the_pooled_answer():
    first_event, *later_events = experiment(2).events()
    foreign_plan = msgspec.structs.replace(first_event.plan, digest="1" * 64)  # not that of the runs' orders
    blocked = fold([msgspec.structs.replace(first_event, plan=foreign_plan), *later_events])
    assert pooled(history_of(1), blocked).comparison.verdict is Verdict.BLOCKED


@pytest.mark.parametrize(("random_outcome", "verdict"), [(70.0, Verdict.INCONCLUSIVE), (40.0, Verdict.EQUIVALENT)])
def test_pooled_groups_are_compared_with_a_baseline_over_all_pairs(random_outcome, verdict):
    """Neither experiment has as many pairs as an equivalence needs, but both together do."""
    groups = ALIKE | {"random": Shape(accuracy=random_outcome, controller="random")}
    settings = {"untested": ("random",), "margin": 4.0}
    histories = [
        history_of(rng_seed, groups=groups, replicates=10, kind="gymnasium", settings=settings) for rng_seed in (1, 2)
    ]
    assert all(not any(finding.kind == "baseline" for finding in analyse(history).findings) for history in histories)
    comparison = pooled(*histories).comparison
    assert (comparison.verdict, comparison.unaudited) == (verdict, Verdict.EQUIVALENT)


def test_an_experiment_near_a_baseline_is_outweighed_by_the_pairs_of_all():
    """A baseline that too few pairs tell apart in one experiment is told apart by those of both."""
    groups = ALIKE | {"random": Shape(accuracy=63.5, controller="random")}
    settings = {"untested": ("random",), "margin": 6.0}
    near, apart = (
        history_of(seed, groups=changed, replicates=20, kind="gymnasium", settings=settings)
        for seed, changed in ((1, groups), (2, groups | {"random": Shape(accuracy=40.0, controller="random")}))
    )
    assert any(finding.kind == "baseline" for finding in analyse(near).findings)
    assert pooled(near, apart).comparison.verdict is Verdict.EQUIVALENT


def test_the_claim_not_worse_is_pooled_at_its_one_sided_bound():
    settings = {"claim": "not-worse", "control": "simplified"}
    whole = experiment(1, replicates=20, groups=ALIKE, settings=settings)
    answer = pooled(fold(whole.events()), fold(replace(whole, rng_seed=4).events()))
    assert answer.comparison.design.non_inferiority.nominal_p == (0.025,)
    assert answer.comparison.last_look.non_inferiority is not None


def test_guardrails_are_tested_over_all_pairs_at_the_pooled_bound():
    settings = {"guardrails": ("lower wall_s margin 10%", "lower crashes margin 0.2"), "control": "simplified"}
    whole = experiment(1, replicates=20, groups=APART, settings=settings)
    answer = pooled(fold(whole.events()), fold(replace(whole, rng_seed=2).events()))
    comparison = answer.comparison
    assert comparison.design.guards.nominal_p == (0.0125,)
    assert [result.result for result in comparison.guardrails] == ["holds", "holds"]
    assert comparison.verdict is Verdict.BETTER


def test_a_pooled_guardrail_does_not_hold_where_a_run_of_one_experiment_has_no_number():
    groups = {name: replace(shape, params=600) for name, shape in APART.items()}
    settings = {"guardrails": ("lower params_added margin 20%",), "control": "simplified"}
    whole = experiment(1, replicates=20, groups=groups, settings=settings)
    other = replace(whole, rng_seed=2)
    unmeasured = {name: replace(shape, unmeasured=(3,)) for name, shape in groups.items()}
    for groups_of_other, expected, left_out in ((groups, "holds", 0), (unmeasured, "not shown", 1)):
        histories = (fold(whole.events()), fold(replace(other, groups=groups_of_other).events()))
        (result,) = pooled(*histories).comparison.guardrails
        assert (result.result, result.look.left_out, result.look.pairs) == (expected, left_out, 40 - left_out)


def test_the_variance_of_a_pooled_comparison_is_its_own():
    groups = {**APART, "sparse": Shape(mode="sparse")}
    whole = experiment(1, groups=groups, settings={"variances": "moderated"})
    histories = [fold(replace(whole, rng_seed=rng_seed).events()) for rng_seed in (1, 2)]
    assert histories[0].design.prior_df > 0
    names = {name: name for name in groups}
    experiments = [JoinedExperiment(name="", history=history, names=names) for history in histories]
    answers = pool(experiments, histories[0].design.comparisons)
    assert {answer.comparison.design.prior_df for answer in answers} == {0}
