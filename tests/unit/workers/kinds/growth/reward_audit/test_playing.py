"""Behaviours that are played together decide as if played alone, on the same hosts."""

from copy import deepcopy
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch
from support.rewards.reward_facts import take_envs
from support.worlds.tensor_world import device_data, env_path, make_env, quiet

from esper_ab.contracts.catalog import names
from esper_ab.contracts.settings import RewardSettings
from workers.environments import Stopwatch
from workers.kinds.growth.controllers.random import Random
from workers.kinds.growth.datasets.behaviour import Behaviour, Behaviours, SeedLife
from workers.kinds.growth.facts import Floats, StepFacts
from workers.kinds.growth.reward_audit.playing import Recorded, joined, player, score
from workers.kinds.growth.reward_lookup import find_reward
from workers.run.episode import play

STEPS = 10
HOSTS = 2
OFFERED = Behaviours(("early", "late"))
NAMES = ("schedule", "prune everything", "wait", "random operations")
SEVERAL = [
    *(one for one in OFFERED.reference if one.name in NAMES),
    *(OFFERED.draw(f"random {number}", np.random.default_rng(number)) for number in range(3)),
]


def played(behaviours: list[Behaviour], **options: int) -> Recorded:
    return player(make_env(1, STEPS).spec, device_data(torch.float64), **options)(behaviours, HOSTS, env_path(0))


@pytest.fixture(scope="module")
def played_together() -> Recorded:
    return played(SEVERAL)


def measured_decisions(recording: Recorded) -> list[tuple[object, ...]]:
    """Return what follows from the decisions: all measures but accuracies and losses."""
    return [
        tuple(value for name, value in host.measures.items() if not name.endswith(("accuracy", "loss")))
        for host in recording.hosts
    ]


def test_behaviours_played_together_decide_as_when_played_alone(played_together: Recorded) -> None:
    for place, behaviour in enumerate(SEVERAL):
        assert (
            measured_decisions(played([behaviour]))
            == measured_decisions(played_together)[place * HOSTS : (place + 1) * HOSTS]
        ), behaviour.name


def test_playing_behaviours_in_chunks_changes_no_decision(played_together: Recorded) -> None:
    chunked = played(SEVERAL, chunk_size=3)
    assert measured_decisions(chunked) == measured_decisions(played_together)
    assert [len(facts.op) for facts in chunked.steps] == [HOSTS * len(SEVERAL)] * STEPS


def test_all_behaviours_begin_with_the_same_hosts(played_together: Recorded) -> None:
    """The first measurement precedes the first decision."""
    first_accuracies = played_together.steps[0].val_acc.reshape(-1, HOSTS)
    assert np.allclose(first_accuracies, first_accuracies[0])


def test_a_behaviour_with_an_unknown_slot_is_refused() -> None:
    behaviour = Behaviour(name="elsewhere", lives=(SeedLife(slot="mid", step=1),))
    with pytest.raises(ValueError, match=r"behaviour 'elsewhere': schedule entry .* no slot 'mid'"):
        played([behaviour])


RECORDED_STEPS = 12
MODES = names("workers.kinds.growth.rewards")
OTHER_CONSTANTS = RewardSettings(
    epoch_progress_bonus=0.7, max_progress_bonus=1.1, base_slot_rent_ratio=0.05, pbrs_weight=0.2, rent_weight=1.0
)


def record(settings: RewardSettings) -> tuple[Recorded, dict[str, Floats]]:
    """Play once in three environments with `settings`: the facts, and what `play` sums up under every mode."""
    env = make_env(3, RECORDED_STEPS)
    step_facts = list[StepFacts]()
    env.spec = replace(env.spec, reward=settings)

    def record_facts(facts: StepFacts) -> Floats:
        step_facts.append(deepcopy(facts))
        return np.zeros(3)

    def bound(mode: str) -> object:
        function = find_reward(mode)
        return lambda facts: function(facts, msgspec.structs.replace(settings, mode=mode))

    rewards = {"kept": record_facts, **{mode: bound(mode) for mode in MODES}}
    result = play(env, [env_path(i) for i in range(3)], Random(), rewards, Stopwatch(), quiet)  # type: ignore[arg-type]
    return Recorded(hosts=result.envs, steps=tuple(step_facts)), result.rewards


@pytest.fixture(scope="module", params=[RewardSettings(), OTHER_CONSTANTS], ids=["as played", "other constants"])
def summed(request: pytest.FixtureRequest) -> tuple[RewardSettings, dict[str, Floats]]:
    return request.param, record(request.param)[1]


@pytest.fixture(scope="module")
def plays() -> Recorded:
    return record(RewardSettings())[0]


@pytest.mark.parametrize("mode", MODES)
def test_scoring_recorded_facts_equals_the_rewards_of_an_evaluation(
    plays: Recorded, summed: tuple[RewardSettings, dict[str, Floats]], mode: str
) -> None:
    settings, sums = summed
    scores = score(plays, find_reward(mode), msgspec.structs.replace(settings, mode=mode))
    assert scores.shape == (RECORDED_STEPS, 3)
    assert scores.sum(axis=0) == pytest.approx(sums[mode], abs=1e-9)
    assert (scores != 0).any()


def test_a_diverged_host_gets_a_penalty_and_no_further_reward(plays: Recorded) -> None:
    ended = msgspec.structs.replace(plays.hosts[1], steps=4, failed=True)
    broken_plays = replace(plays, hosts=(plays.hosts[0], ended, plays.hosts[2]))
    settings = RewardSettings(mode="simplified", divergence_penalty=-7.0)
    whole, broken_scores = (
        score(recording, find_reward("simplified"), settings) for recording in (plays, broken_plays)
    )
    assert np.array_equal(broken_scores[:3], whole[:3])
    assert broken_scores[3, 1] == whole[3, 1] - 7
    assert (broken_scores[4:, 1] == 0).all()
    assert np.array_equal(broken_scores[:, [0, 2]], whole[:, [0, 2]])


@pytest.mark.parametrize(("value", "complaint"), [(np.nan, "is not finite"), (1e200, r"is beyond 1e\+40")])
def test_an_invalid_reward_value_is_refused(plays: Recorded, value: float, complaint: str) -> None:
    def broken_reward(facts: StepFacts, settings: RewardSettings) -> Floats:
        return np.where(facts.step == 3, value, facts.val_acc)

    with pytest.raises(ValueError, match=f"reward mode 'mine' {complaint} at step 3"):
        score(plays, broken_reward, RewardSettings(mode="mine"))


def test_scores_of_joined_episodes_equal_those_of_single_episodes(plays: Recorded) -> None:
    """One of them shorter, as when all its hosts diverged: what fills it up earns nothing."""
    diverged_hosts = tuple(msgspec.structs.replace(host, steps=5, failed=True) for host in plays.hosts[:2])
    short_plays = Recorded(hosts=diverged_hosts, steps=tuple(take_envs(facts, [0, 1]) for facts in plays.steps[:5]))
    settings = RewardSettings(mode="shaped")
    function = find_reward("shaped")
    scores = score(joined([short_plays, plays]), function, settings)
    assert np.allclose(scores[:, 2:], score(plays, function, settings))
    assert np.allclose(scores[:5, :2], score(short_plays, function, settings))
    assert (scores[5:, :2] == 0).all()


def test_joining_episodes_without_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="every host diverged in its first epoch"):
        joined([Recorded(hosts=(), steps=())])
