"""The variance that the comparisons of a plan share: at which looks, of which pairs, and what follows from it."""

import msgspec
import numpy as np
import pytest
from msgspec import UNSET
from scipy import stats
from support.outcomes.csv_outcomes import outcomes, scales
from support.outcomes.look_designs import AB, AC, BC, design, pairs_from

from esper_ab.api.external import judge_outcomes
from esper_ab.contracts.errors import UsageError
from esper_ab.design.design import Boundary, Contrast, extended
from esper_ab.design.moderation import ModeratedVariances
from esper_ab.readers.external_plan import make_external_plan, read_plan, save_plan
from esper_ab.stats.adjusted_difference import adjusted_difference
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.judge import judge
from esper_ab.verdict.looks import progress_after, retake_look

RNG = np.random.default_rng(8)
DIFFERENCES = {AB: RNG.normal(0.0, 1.0, 30), AC: RNG.normal(0.5, 2.0, 30), BC: RNG.normal(0.5, 3.0, 30)}
DATA = {contrast: pairs_from(differences) for contrast, differences in DIFFERENCES.items()}
MODERATED = ModeratedVariances(prior_df=2)


def moderated_design(**changes):
    return design((AB, AC, BC), **{"adjusted": False, "variances": MODERATED} | changes)


def prior_by_hand(data, pairs):
    """Return the mean of the variances of the first pairs."""
    return np.mean([np.var(differences[:pairs], ddof=1) for differences in data.values()])


def table(values):
    """Return a row per run, from the outcomes by group."""
    return [
        {"group": group, "seed": seed, "outcome": value}
        for group, of_group in values.items()
        for seed, value in enumerate(of_group)
    ]


def test_each_look_shares_the_mean_variance_of_its_own_pairs():
    progress = progress_after(moderated_design(), DATA, 20)
    for contrast, differences in DIFFERENCES.items():
        for look in progress[contrast].looks:
            used = differences[: look.replicates]
            assert look.prior.variance == pytest.approx(prior_by_hand(DIFFERENCES, look.replicates))
            df = look.replicates - 1
            variance = (2 * look.prior.variance + df * np.var(used, ddof=1)) / (2 + df)
            expected = adjusted_difference(used, np.zeros(len(used)), np.zeros((len(used), 2)), 1)
            assert look.prior.df == 2
            assert abs(look.high - look.mean) > 0.0
            assert expected.mean / np.sqrt(variance / len(used)) == pytest.approx(t_of(look, df + 2))


def t_of(look, df):
    """Return the t of a look, from its p."""
    return np.sign(look.mean) * stats.t.isf(look.p / 2.0, df)


def test_a_decided_comparison_shares_only_the_pairs_before_its_decision():
    early = np.concatenate([60.0 + 0.1 * RNG.standard_normal(6), RNG.normal(0.0, 50.0, 24)])
    data = DATA | {AB: pairs_from(early)}
    progress = progress_after(moderated_design(), data, 20)
    assert progress[AB].decided_at == 6
    weights = np.array([5, 19, 19])
    variances = [np.var(early[:6], ddof=1), np.var(DIFFERENCES[AC][:20], ddof=1), np.var(DIFFERENCES[BC][:20], ddof=1)]
    assert progress[BC].last.prior.variance == pytest.approx(np.average(variances, weights=weights))
    late = progress_after(moderated_design(early_stop=False), data, 20)
    assert late[BC].last.prior.variance > 100.0


def test_tasks_share_nothing_with_each_other():
    tasks = {Contrast(a="a", b=b, task=task): scale for b in "bc" for task, scale in (("x", 1.0), ("y", 100.0))}
    data = {contrast: pairs_from(scale * DIFFERENCES[AB]) for contrast, scale in tasks.items()}
    boundaries = tuple(Boundary(open=n, alpha=0.05 / n, nominal_p=(1e-9,) * 4) for n in (4, 3, 2, 1))
    plan = msgspec.structs.replace(moderated_design(), comparisons=tuple(tasks), boundaries=boundaries)
    priors = {contrast.task: of.last.prior for contrast, of in progress_after(plan, data, 20).items()}
    assert priors["y"].variance == pytest.approx(10_000.0 * priors["x"].variance)
    assert priors["x"].df == 1  # as in a plan of one task with two comparisons


def test_looks_beyond_the_plan_have_the_own_variance():
    progress = progress_after(extended(moderated_design(), 20), DATA, 24)
    assert progress[BC].looks[3].prior.df == 2
    assert [look.prior for look in progress[BC].looks[4:]] == [UNSET] * 4


def test_own_variances_are_the_looks_of_a_plan_without_the_option():
    for look in progress_after(design((AB, AC, BC)), DATA, 20)[AB].looks:
        assert "prior" not in msgspec.to_builtins(look)


def test_a_look_taken_again_keeps_its_prior():
    look = progress_after(moderated_design(), DATA, 20)[BC].last
    again = retake_look(moderated_design(), look, pairs_from(3.0 + 9.0 * DIFFERENCES[BC]), None)
    assert again.prior == look.prior
    assert again.p != look.p


def test_comparisons_of_zeros_and_ones_share_nothing():
    values = {group: RNG.normal(50.0, 1.0, 8) for group in "ab"} | {group: [0.0, 1.0] * 4 for group in "cd"}
    plan = make_external_plan(tuple("abcd"), [str(seed) for seed in range(8)], scales(0.5), Rule(variances="moderated"))
    progress = judge(plan, outcomes(table(values))).progress.comparisons
    looks = {contrast: of.last for contrast, of in progress.items()}
    assert looks[Contrast(a="c", b="d")].prior is UNSET
    assert looks[AB].prior.df == 4


def test_the_numbers_of_a_comparison_are_those_of_its_look(tmp_path):
    plan = make_external_plan(tuple("abc"), [str(seed) for seed in range(20)], scales(), Rule(variances="moderated"))
    save_plan(plan, tmp_path / "plan.json")
    values = {group: RNG.normal(50.0 + place, 1.0, 20) for place, group in enumerate("abc")}
    comparison = judge(read_plan(tmp_path / "plan.json"), outcomes(table(values))).comparisons[0]
    look = comparison.last_look
    assert (comparison.effect.p, comparison.effect.prior) == (look.p, look.prior)
    assert comparison.effect.df == look.pairs - 1 + 2
    assert comparison.plain.df == look.pairs - 1
    assert comparison.test == "moderated paired t"
    assert comparison.equivalence is None or comparison.equivalence.p_upper > 0.0
    assert comparison.effect.interval(look.bound_p) == pytest.approx((look.low, look.high))


def test_pairs_needed_count_the_degrees_of_freedom_of_the_prior():
    """The same comparison needs no more pairs if the others, with the same spread, share their variance."""
    shared = {group: RNG.normal(50.0, 2.0, 8).tolist() for group in "abcdef"}
    needed = {}
    for variances in ("own", "moderated"):
        plan = make_external_plan(tuple(shared), [str(seed) for seed in range(8)], scales(), Rule(variances=variances))
        needed[variances] = [item.pairs_anew.pairs for item in judge(plan, outcomes(table(shared))).comparisons]
    assert np.mean(needed["moderated"]) < np.mean(needed["own"])


def test_a_plan_with_moderated_variances_refuses_items_below_runs(tmp_path):
    plan = make_external_plan(tuple("abc"), ["0", "1"], scales(0.5), Rule(variances="moderated"))
    save_plan(plan, tmp_path / "plan.json")
    places = [(group, seed, item) for group in "abc" for seed in (0, 1) for item in range(3)]
    columns = dict(zip(("group", "seed", "item"), zip(*places, strict=True), strict=True))
    with pytest.raises(UsageError, match="moderates variances of runs"):
        judge_outcomes(tmp_path / "plan.json", columns | {"outcome": RNG.normal(size=len(places))})
