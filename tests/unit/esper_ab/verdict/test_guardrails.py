"""Guardrails: tested in their order after the claim, at looks of their own bounds, and named in the answer."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from scipy import stats
from support.journals.synthetic import Shape, Synthetic
from support.outcomes.compared_designs import lost, pairs_of

from esper_ab.contracts.errors import ConditionNotMet, UsageError
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.tables.guardrails import guardrail_tables
from esper_ab.report.text import render_text
from esper_ab.report.verdict_json import comparison_json
from esper_ab.verdict.guardrail_look import GuardedRuns, guardrail_look
from esper_ab.verdict.guardrails import guardrail_results
from esper_ab.verdict.headline import alike
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.question import Lost
from esper_ab.verdict.requirement import Requirement, holds, parse_requirement, require
from esper_ab.verdict.verdict import Verdict

PARAMS = "lower params_added margin 20%"
LOSS = "lower val_loss margin 0.5"
WALL_TIME = "lower wall_s margin 10%"
CRASHES = "lower crashes margin 0.25"
NOTHING_LOST = Lost()


def judged(*guardrails, accuracy=76.0, params=600, seeds=20, unmeasured=((), ()), **settings):
    """Return the comparison shaped - simplified of an experiment, and its report's content.

    `unmeasured`: the seeds in which a run of shaped, and of simplified, has no number for parameters added.
    """
    journal = Synthetic(
        groups={
            "shaped": Shape(accuracy=accuracy, params=params, unmeasured=unmeasured[0]),
            "simplified": Shape(accuracy=69.0, mode="simplified", params=600, unmeasured=unmeasured[1]),
        },
        replicates=seeds,
        episodes=2,
        settings={"guardrails": guardrails, **settings},
    )
    whole = content(fold(journal.events()))
    return whole.comparisons[0], whole


def measured(a, b, unknown=NOTHING_LOST):
    """Return the measure in the runs of both groups; `unknown`: replicates in which it is no number."""
    return GuardedRuns(data=pairs_of(a, b), lost=unknown)


def results(comparison):
    return [result.result for result in comparison.guardrails]


def test_all_guardrails_of_a_better_group_hold():
    comparison, _ = judged(PARAMS, WALL_TIME, CRASHES)
    assert comparison.verdict is Verdict.BETTER
    assert results(comparison) == ["holds"] * 3
    assert "; 3 guardrails hold: parameters added, wall time and crashes per run." in comparison.headline


def test_the_first_guardrail_that_does_not_hold_is_named_and_the_rest_is_not_tested():
    comparison, _ = judged(CRASHES, PARAMS, WALL_TIME, params=900)
    assert results(comparison) == ["holds", "not shown", "not tested"]
    assert "; but parameters added of shaped is not shown to be no worse by 20 %: " in comparison.headline
    assert comparison.headline.endswith("higher (guardrail 2 of 3).")
    assert comparison.verdict is Verdict.BETTER


def test_nothing_is_tested_unless_the_claim_is_made():
    comparison, _ = judged(CRASHES, WALL_TIME, accuracy=69.0)
    assert comparison.verdict not in (Verdict.BETTER, Verdict.BETTER_BELOW_MARGIN)
    assert results(comparison) == ["not tested"] * 2
    assert "guardrail" not in comparison.headline
    worse, _ = judged(CRASHES, accuracy=60.0)
    assert (worse.verdict, results(worse)) == (Verdict.WORSE, ["not tested"])


def test_after_the_claim_not_worse_guardrails_are_tested_too():
    comparison, _ = judged(WALL_TIME, accuracy=69.0, claim="not-worse")
    assert (comparison.verdict, results(comparison)) == (Verdict.NOT_WORSE, ["holds"])


def test_in_a_plan_for_not_worse_better_comes_after_the_guardrails():
    better, _ = judged(WALL_TIME, claim="not-worse")
    assert (better.verdict, results(better)) == (Verdict.BETTER, ["holds"])
    guarded, _ = judged(PARAMS, params=900, claim="not-worse")
    assert (guarded.verdict, results(guarded)) == (Verdict.NOT_WORSE, ["not shown"])
    assert "is not worse than simplified by 2 points or more" in guarded.headline
    assert "parameters added of shaped is not shown" in guarded.headline


def test_an_interim_look_waits_until_the_guardrails_hold():
    comparison, _ = judged(PARAMS, params=900, seeds=30)
    assert [look.crossed for look in comparison.progress.looks] == [True, True]
    assert comparison.progress.decided_at == 30
    at_once, _ = judged(PARAMS, seeds=30)
    assert at_once.progress.decided_at == 20
    waiting, _ = judged(PARAMS, params=900, seeds=30, early_stop=False)
    assert waiting.progress.decided_at == 20


def test_a_comparison_that_waits_says_so():
    comparison, _ = judged(PARAMS, params=900, seeds=30)
    first_look = comparison.progress.looks[:1]
    progress = msgspec.structs.replace(
        comparison.progress, looks=first_look, decision="open", decided_at=None, finished=False, direction=0
    )
    open_comparison = replace(comparison, progress=progress, verdict=Verdict.INCONCLUSIVE)
    assert "but a guardrail is not shown yet to hold, so the seeds go on to the next look" in open_comparison.headline


def test_a_margin_in_percent_is_a_share_of_the_other_groups_mean():
    """The limit is that of the paired t of a - b (1 + share), which is solved here by its quadratic equation."""
    comparison, _ = judged(PARAMS)
    (guardrail,) = comparison.design.guards.items
    rng = np.random.default_rng(8)
    b = rng.normal(100.0, 8.0, 20)
    a = 0.5 * b + rng.normal(54.0, 4.0, 20)
    t = stats.t.isf(0.025, 19) / np.sqrt(20)
    covariance = np.cov(a, b)
    roots = np.roots(
        [
            b.mean() ** 2 - t**2 * covariance[1, 1],
            -2.0 * (a.mean() * b.mean() - t**2 * covariance[0, 1]),
            a.mean() ** 2 - t**2 * covariance[0, 0],
        ]
    )
    design = msgspec.structs.replace(comparison.design, adjusted=False)
    look = guardrail_look(design, guardrail, 20, measured(a, b), NOTHING_LOST)
    assert look.worse == pytest.approx(a.mean() / b.mean() - 1.0)
    assert look.worse_at_most == pytest.approx(max(roots) - 1.0, abs=1e-6)
    assert look.p == pytest.approx(stats.ttest_1samp(a - 1.2 * b, 0.0, alternative="less").pvalue)
    for share, holds_there in ((look.worse_at_most + 1e-6, True), (look.worse_at_most - 1e-6, False)):
        narrow = msgspec.structs.replace(guardrail, margin=share)
        assert guardrail_look(design, narrow, 20, measured(a, b), NOTHING_LOST).holds == holds_there


def test_without_runs_of_its_own_a_measure_is_not_shown_to_hold():
    comparison, _ = judged(PARAMS, CRASHES)
    params, crashes = comparison.design.guards.items
    design = comparison.design
    same = measured(np.full(20, 5.0), np.full(20, 5.0))
    assert guardrail_look(design, params, 20, same, NOTHING_LOST).holds
    assert guardrail_look(design, params, 20, same, NOTHING_LOST).worse_at_most == 0.0
    few = guardrail_look(design, params, 20, measured(np.full(14, 5.0), np.full(14, 5.0)), NOTHING_LOST)
    assert not few.holds
    losses = lost((3, None, 70.0))
    assert not guardrail_look(design, params, 20, same, losses).holds
    none = measured(np.zeros(20), np.zeros(20))
    look = guardrail_look(design, crashes, 20, none, losses)
    assert look.holds
    assert 0.1 < look.worse_at_most < 0.25
    ten = measured([1.0] * 5 + [0.0] * 15, [0.0] * 20)
    assert not guardrail_look(design, crashes, 20, ten, losses).holds
    negative = guardrail_look(design, params, 20, measured(np.full(20, 5.0), np.full(20, -5.0)), NOTHING_LOST)
    assert (negative.worse, negative.holds) == (None, False)


@pytest.mark.parametrize(
    ("unmeasured", "reason"),
    [
        (((3,), ()), "1 run of shaped left no value, so 1 pair is left out"),
        (((), (3, 4)), "2 runs of simplified left no value, so 2 pairs are left out"),
        (((3, 5), (3, 4)), "2 runs of shaped and 2 runs of simplified left no value, so 3 pairs are left out"),
    ],
)
@pytest.mark.parametrize("claim", ["difference", "not-worse"])
def test_a_guardrail_does_not_hold_where_a_run_has_no_number_for_its_measure(unmeasured, reason, claim):
    comparison, _ = judged(PARAMS, WALL_TIME, unmeasured=unmeasured, claim=claim)
    assert results(comparison) == ["not shown", "not tested"]
    assert f"by 20 %: {reason} (guardrail 1 of 2)." in comparison.headline
    look = comparison.guardrails[0].look
    assert (look.lost, look.lost_b) == tuple(map(len, unmeasured))
    left_out = len({*unmeasured[0], *unmeasured[1]})
    assert (look.left_out, look.pairs) == (left_out, 20 - left_out)
    assert comparison_json(comparison)["guardrails"][0].look == look
    (table,) = guardrail_tables([comparison])
    assert table.rows[0][1] == f"{20 - left_out} of 20"


def test_a_look_waits_where_a_run_has_no_number_for_a_guarded_measure():
    comparison, _ = judged(PARAMS, seeds=30, unmeasured=((3,), ()))
    assert comparison.progress.decided_at == 30
    later, _ = judged(PARAMS, seeds=30, unmeasured=((25,), ()))
    assert (later.progress.decided_at, results(later)) == (20, ["holds"]), "it is no run of that look"


def test_a_run_that_was_lost_has_no_measure_and_is_counted_once():
    comparison, _ = judged(PARAMS, CRASHES)
    params, crashes = comparison.design.guards.items
    lost_run = lost((3, None, 70.0))
    rest = [5.0] * 20
    look = guardrail_look(comparison.design, params, 20, measured(rest, rest, lost_run), lost_run)
    assert (look.lost, look.lost_b, look.left_out) == (1, 0, 0)
    both = guardrail_look(
        comparison.design, params, 20, measured(rest, rest, lost((3, 1.0, None))), lost((3, 1.0, None))
    )
    assert (both.lost, both.lost_b, both.holds) == (0, 0, True), "a lost run of the other group favours that group"
    known = guardrail_look(comparison.design, crashes, 20, measured([1.0] * 20, [0.0] * 20), lost_run)
    assert (known.lost, known.lost_b, known.left_out) == (0, 0, 0)


def test_a_higher_measure_may_be_the_better_one():
    fewer, _ = judged("higher params_added margin 20%", params=300)
    assert (results(fewer), fewer.guardrails[0].look.worse > 0.2) == (["not shown"], True)
    more, _ = judged("higher params_added margin 20%", params=900)
    assert results(more) == ["holds"]


def test_the_table_and_the_json_have_every_guardrail():
    comparison, whole = judged(CRASHES, PARAMS, WALL_TIME, params=900)
    text = render_text(experiment_report(whole))
    assert "Guardrails" in text
    for words in ("crashes per run", "parameters added", "wall time", "holds", "not shown", "not tested"):
        assert words in text
    written = msgspec.json.decode(msgspec.json.encode(comparison_json(comparison)["guardrails"]))
    assert [item["result"] for item in written] == ["holds", "not shown", "not tested"]
    assert written[1]["guardrail"]["margin"] == 0.2
    assert written[1]["look"]["worse"] > 0.2
    assert "guardrails" not in comparison_json(judged()[0])


def test_a_condition_with_guardrails_needs_all_of_them():
    guarded = Requirement(left="shaped", relation="better-than", right="simplified", guarded=True)
    assert holds(guarded, judged(CRASHES, PARAMS)[0])
    failing, _ = judged(CRASHES, PARAMS, params=900)
    assert holds(replace(guarded, guarded=False), failing)
    assert not holds(guarded, failing)
    reason = r"with guardrails\" does not hold: .* but the guardrail parameters added \(20 %\) is not shown"
    with pytest.raises(ConditionNotMet, match=reason):
        require([guarded], [failing])
    with pytest.raises(ConditionNotMet, match="the plan has no guardrails"):
        require([guarded], [judged()[0]])


def test_a_condition_with_guardrails_is_about_the_group_that_is_compared():
    comparison, _ = judged(CRASHES)
    contrasts = comparison.design.comparisons
    groups = ("shaped", "simplified")
    text = "shaped better-than simplified with guardrails"
    assert str(parse_requirement(text, groups, contrasts)) == text
    with pytest.raises(UsageError, match="this plan has no guardrails"):
        parse_requirement(text, groups, contrasts, has_guardrails=False)
    for wrong in ("simplified better-than shaped", "shaped worse-than simplified"):
        with pytest.raises(UsageError, match="guardrails are those of a group that is compared"):
            parse_requirement(f"{wrong} with guardrails", groups, contrasts)


def identical(*guardrails, seeds=20, unmeasured=(), **settings):
    """Return the comparison of two groups whose records all agree."""
    groups = {name: Shape(stream="same", unmeasured=unmeasured) for name in ("shaped", "simplified")}
    settings = {"guardrails": guardrails, **settings}
    journal = Synthetic(groups=groups, replicates=seeds, episodes=2, settings=settings)
    (comparison,) = content(fold(journal.events())).comparisons
    assert comparison.verdict is Verdict.IDENTICAL
    return comparison


def guarded(comparison, relation="not-worse-than"):
    question = comparison.question
    return Requirement(left=question.a, relation=relation, right=question.b, guarded=True)


@pytest.mark.parametrize("settings", [{"claim": "not-worse"}, {}])
def test_equal_records_admit_the_guardrails(settings):
    comparison = identical(PARAMS, WALL_TIME, CRASHES, **settings)
    assert results(comparison) == ["holds"] * 3
    params, wall_time, crashes = [result.look for result in comparison.guardrails]
    assert (params.worse, params.worse_at_most, params.pairs) == (0.0, 0.0, 20)
    assert wall_time.holds
    assert crashes.worse_at_most > 0.1, "crashes are in no record, so they are tested"
    assert comparison.headline.endswith("; 3 guardrails hold: parameters added, wall time and crashes per run.")
    require([guarded(comparison)], [comparison])
    assert not holds(guarded(comparison, "better-than"), comparison)


def test_equal_records_without_a_number_are_named_beside_the_guardrail_that_holds():
    comparison = identical(PARAMS, CRASHES, unmeasured=(3, 4))
    assert results(comparison) == ["holds"] * 2
    assert "; 2 guardrails hold: parameters added (2 pairs without a value left out) and crashes" in comparison.headline


def test_a_guardrail_on_what_is_in_no_record_may_fail_groups_with_equal_records():
    comparison = identical(PARAMS, "lower crashes margin 0.05", WALL_TIME, claim="not-worse")
    assert results(comparison) == ["holds", "not shown", "not tested"]
    assert "; but crashes per run of shaped is not shown to be no worse by 0.05" in comparison.headline
    with pytest.raises(ConditionNotMet, match=r"is IDENTICAL, but the guardrail crashes per run \(0.05\) is not shown"):
        require([guarded(comparison)], [comparison])


def test_equal_records_need_no_look_for_the_measures_in_them():
    comparison = identical(PARAMS)
    progress = msgspec.structs.replace(comparison.progress, looks=())
    equal = pairs_of(np.zeros(6), np.zeros(6))

    def results_of(data, losses=NOTHING_LOST, verdict=Verdict.IDENTICAL):
        pairing = Pairing(pairs=data, lost=losses, guardrails=(GuardedRuns(data=data),))
        return guardrail_results(comparison.design, progress, pairing, verdict)

    (result,) = results_of(equal)
    assert (result.result, result.look.worse, result.look.worse_at_most) == ("holds", 0.0, 0.0)
    for other in (results_of(equal[:5]), results_of(pairs_of(np.ones(6), np.zeros(6)))):
        assert [item.result for item in other] == ["not shown"]
    assert [item.result for item in results_of(equal, lost((6, None, 70.0)))] == ["not shown"]
    assert results_of(equal, verdict=Verdict.BETTER) == ()


def test_the_requirement_names_a_guardrail_that_no_look_has_tested_yet():
    before_a_look = replace(identical(WALL_TIME), guardrails=())
    with pytest.raises(ConditionNotMet, match=r"is IDENTICAL, but the guardrail wall time \(10 %\) is not tested"):
        require([guarded(before_a_look)], [before_a_look])


def test_comparisons_with_equal_records_are_named_one_by_one_if_they_have_guardrails():
    assert alike(identical(PARAMS)) == ()
    assert alike(identical()) != ()
