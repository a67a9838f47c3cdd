"""`--eval-hosts`: what a number and what auto come to, and what the choice depends on."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asking import asked, experiment, machine, planned

from esper_ab.contracts.errors import UsageError
from esper_ab.plan.blocks import extend
from esper_ab.settings.eval_hosts import DEFAULT_HOSTS, EvaluationNoise, choose_hosts, shipped
from esper_ab.settings.flags import parse_flags
from esper_ab.settings.resolve import resolve
from esper_ab.stats.evaluation_noise import Components

DIGITS = next(one for one in shipped() if one.task == "digits")


def noise(policy: float, host: float, ratio_high: float, evaluation_host_s: float = 0.1) -> EvaluationNoise:
    found = Components(
        runs=12, hosts=16, policy=policy, host=host, share=0.5, share_low=0.4, share_high=0.6, ratio_high=ratio_high
    )
    return EvaluationNoise(
        components=found, episodes=3, n_envs=4, training_host_s=0.1, evaluation_host_s=evaluation_host_s
    )


def test_a_number_is_a_number() -> None:
    assert choose_hosts(experiment(eval_hosts=7)) == choose_hosts(experiment(eval_hosts=7, n_envs=5), noise(1, 1, 1))
    assert choose_hosts(experiment(eval_hosts=7)).hosts == 7
    assert choose_hosts(experiment(eval_hosts=7)).why == ""


def test_auto_is_the_default_and_the_plan_has_its_number_and_its_reason() -> None:
    assert experiment().eval_hosts == "auto"
    found = choose_hosts(experiment())
    plan = planned(experiment(), machine())
    assert plan.experiment.eval_hosts == found.hosts == DIGITS.noise.best(3, 4)
    pairs = DIGITS.noise.components.runs
    assert f"from {pairs} earlier pairs shaped - simplified on digits with 3 x 4 training episodes" in found.why


def test_the_number_is_part_of_the_digest_and_the_same_for_every_run() -> None:
    plans = [planned(experiment(eval_hosts=hosts), machine()) for hosts in (8, 9)]
    assert plans[0].digest != plans[1].digest
    for plan in plans:
        assert {spec.eval_hosts for block in plan.blocks for spec in block.runs} == {plan.experiment.eval_hosts}
    same = planned(experiment(eval_hosts=choose_hosts(experiment()).hosts), machine())
    assert same.digest == planned(experiment(), machine()).digest


def test_replicates_that_are_added_have_the_hosts_of_the_plan() -> None:
    plan = planned(experiment(), machine())
    added = extend(plan, plan.design, len(plan.blocks), 4)
    assert {spec.eval_hosts for block in added.blocks for spec in block.runs} == {plan.experiment.eval_hosts}


@given(st.integers(0, 2**31), st.integers(6, 40), st.sampled_from(["a", "b"]), st.floats(0.1, 9.0))
def test_it_depends_on_nothing_that_an_experiment_finds_or_is_called(rng_seed, replicates, name, margin) -> None:
    """Not on its randomness, name, groups or margin: only on task, budget and calibration."""
    other = experiment(("x", "y", "z"), rng_seed=rng_seed, replicates=replicates, name=name, margin=margin)
    assert choose_hosts(other) == choose_hosts(experiment())


def test_without_a_calibration_it_is_the_documented_number_in_whole_episodes() -> None:
    for changes in ({"task": "mine"}, {"steps": 7}, {"slots": ("early",)}, {"episodes": 5000}):
        found = choose_hosts(experiment(**changes))
        assert found.hosts == DEFAULT_HOSTS
        assert "the default of 16" in found.why
    assert choose_hosts(experiment(task="mine", n_envs=6)).hosts == 18


def test_the_nearest_budget_counts() -> None:
    twelve = next(one for one in shipped() if one.task == "digits" and one.noise.episodes == 12)
    assert choose_hosts(experiment(episodes=20, n_envs=8)).hosts == twelve.noise.best(20, 8)
    assert choose_hosts(experiment(episodes=2, n_envs=4)).hosts == DIGITS.noise.best(2, 4)


def test_an_endpoint_of_training_needs_one_episode() -> None:
    found = choose_hosts(experiment(endpoint="last-tenth", n_envs=6))
    assert found.hosts == 6
    assert "training episodes" in found.why


def test_a_calibration_of_ones_own_takes_precedence() -> None:
    own = noise(100.0, 1.0, 200.0)
    assert choose_hosts(experiment(), own).hosts == 4
    assert "by --calibration" in choose_hosts(experiment(), own).why
    assert resolve(experiment(), machine(), "x", own).eval_hosts == 4


def test_no_policy_variance_is_bounded_and_dear_hosts_are_fewer() -> None:
    none = noise(-3.0, 60.0, -0.01)
    assert none.next_hosts == 4 * (12 + 4)
    assert noise(1.0, 60.0, 0.02, evaluation_host_s=1.0).next_hosts < noise(1.0, 60.0, 0.02).next_hosts
    assert none.variance_times(32) == pytest.approx(0.8)  # a share of 0.4 is sure, and half of it is left
    assert noise(1.0, 16.0, 1.0).variance_times(4) == pytest.approx(5 / 2)
    assert none.cost_times(32) == pytest.approx((16 + 32) / (16 + 16))
    assert none.cost_share == pytest.approx(0.5)


def test_what_ships_says_how_it_was_made() -> None:
    assert len({one.rng_seed for one in shipped()}) == len(shipped())
    for one in shipped():
        assert one.noise.components.host > 0.0
        assert one.noise.components.hosts >= 32
        assert all((one.machine, one.date, one.version, one.kernel, one.slots))


@pytest.mark.parametrize("typed", ["auto", "12"])
def test_flag_setting_and_file_mean_the_same(typed: str, tmp_path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f"eval_hosts = {typed if typed.isdigit() else repr(typed)}\n")
    none = {"config": None}
    by_flag, by_set = parse_flags({**none, "eval_hosts": typed}), parse_flags({**none, "set": [f"eval_hosts={typed}"]})
    assert by_flag == by_set == parse_flags({"config": file})
    assert by_flag.eval_hosts == (int(typed) if typed.isdigit() else "auto")


@pytest.mark.parametrize("typed", ["0", "many", "1.5", "-1"])
def test_anything_else_is_refused_in_words(typed: str) -> None:
    with pytest.raises(UsageError, match="a whole number"):
        parse_flags({"config": None, "eval_hosts": typed})
    with pytest.raises(UsageError, match="expected a whole number from 1 up, or auto, not"):
        asked(sets=(f"eval_hosts={typed}",))


def test_an_asked_number_survives_a_resolved_experiment_and_its_file() -> None:
    """`experiment.toml` names the number, so that a repetition does not depend on what ships then."""
    found = planned(experiment(), machine()).experiment
    assert isinstance(msgspec.to_builtins(found)["eval_hosts"], int)
