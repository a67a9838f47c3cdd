"""What is said of a group's learning, from synthetic journals that are each limited by one thing."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from support.journals import Shape, Synthetic, one_replicate

from esper_ab.analysis.learning import Learning, greedy_gap, learning, unsettled
from esper_ab.contracts.records import EpisodeRecord, HeadUse
from esper_ab.contracts.settings import PPOSettings
from esper_ab.journal.events import EpisodeRecorded
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes

Change = Callable[[EpisodeRecord], EpisodeRecord]


def learnt(change: Change = lambda record: record, greedy: float = 0.0, **ppo: float) -> tuple[Learning, ...]:
    """The learning of a learner and of `wait`, with changed episodes; greedy actions gain `greedy` points."""
    good = Shape(accuracy=75.0, greedy=greedy, ppo=PPOSettings(**ppo))
    groups = {"good": good, "wait": Shape(accuracy=33.0, controller="wait")}
    events = []
    for event in Synthetic(groups=groups, replicates=2, episodes=20).events():
        if isinstance(event, EpisodeRecorded):
            event = EpisodeRecorded(record=change(event.record))
        events.append(event)
    history = fold(events)
    return learning(history, outcomes(history))


def changed_ppo(**fields: object) -> Change:
    """Updates with these fields; `op` is the entropy of the op head."""
    op = fields.pop("op", None)

    def change(record: EpisodeRecord) -> EpisodeRecord:
        if record.ppo is None:
            return record
        ppo = msgspec.structs.replace(record.ppo, **fields)
        if op is not None:
            ppo = msgspec.structs.replace(ppo, heads={**ppo.heads, "op": HeadUse(entropy=op, learnable=1.0)})
        return msgspec.structs.replace(record, ppo=ppo)

    return change


def test_only_groups_that_learn_are_described_with_their_budget():
    (found,) = learnt()
    assert (found.group, found.updates, found.episodes) == ("good", 20.0, 80.0)
    assert found.trust_region == pytest.approx(0.012 / 0.05)


@pytest.mark.parametrize(
    ("change", "greedy", "words"),
    [
        (changed_ppo(op=0.95), 0.0, "close to uniform"),
        (changed_ppo(op=0.95), 12.0, "close to uniform"),
        (changed_ppo(op=0.5), 12.0, "prefers better actions"),
        (changed_ppo(op=0.5), -30.0, "most probable action alone"),
        (changed_ppo(op=0.5, approx_kl=0.002), 0.0, "uses 4 % of the trust region"),
        (changed_ppo(op=0.5, stopped_by_kl=True), 0.0, "100 % of the updates stop"),
        (changed_ppo(op=0.5, stopped_by_kl=True, approx_kl=0.002), 0.0, "100 % of the updates stop"),
        (changed_ppo(op=0.5), 0.0, "none of the known limits"),
    ],
)
def test_the_sentence_names_what_limits_the_runs(change, greedy, words):
    (found,) = learnt(change, greedy)
    assert words in found.limit
    assert found.limit.startswith("good: ")


def test_of_updates_of_one_step_it_is_not_known_how_much_of_the_trust_region_they_use():
    """KL is measured before every step, so before the only one it is 0, however large that step is."""
    (found,) = learnt(changed_ppo(op=0.5, approx_kl=0.0), epochs=1, minibatches=1)
    assert found.trust_region is None
    assert "none of the known limits" in found.limit
    for epochs, minibatches in ((1, 2), (2, 1)):
        (found,) = learnt(changed_ppo(op=0.5, approx_kl=0.0), epochs=epochs, minibatches=minibatches)
        assert "uses 0 % of the trust region" in found.limit


def test_a_policy_that_is_not_to_learn_is_neither_unsettled_nor_short_of_updates():
    (found,) = learnt(changed_ppo(op=0.95), 12.0, lr=0.0)
    assert not found.learns
    assert found.limit == "good: the learning rate is 0, so the policy is the untrained one."
    design = fold(one_replicate()).design
    assert unsettled(design, [found]) == []
    assert unsettled(design, learnt(changed_ppo(op=0.95), 12.0)) == ["good"]


def test_an_unlike_greedy_outcome_is_told_also_of_a_policy_close_to_uniform():
    (found,) = learnt(changed_ppo(op=0.95), 12.0)
    assert f"{found.greedy:.2f} %" in found.limit
    assert found.greedy == pytest.approx(found.sampled + 12.0, abs=3.0)


def test_first_and_last_measures_are_those_of_the_ends_of_training():
    def fewer_prunes(record: EpisodeRecord) -> EpisodeRecord:
        counts = {"pruned": 4.0 if record.episode == 0 else 1.0, "fossilized": 2.0 if record.episode >= 18 else 0.0}
        envs = tuple(msgspec.structs.replace(env, measures=env.measures | counts) for env in record.envs)
        return msgspec.structs.replace(record, envs=envs)

    (found,) = learnt(fewer_prunes)
    assert (found.first["pruned"], found.last["pruned"]) == (4.0, 1.0)
    assert (found.first["fossilized"], found.last["fossilized"]) == (0.0, 2.0)


@pytest.mark.parametrize(("sampled", "greedy"), [(None, 50.0), (50.0, None), (50.0, 54.9), (50.0, 45.1)])
def test_a_small_or_unknown_gap_is_not_commented_on(sampled, greedy):
    assert greedy_gap(fold(one_replicate()).design, sampled, greedy) == ""
