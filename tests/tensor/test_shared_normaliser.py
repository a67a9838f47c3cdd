"""A session whose normaliser is shared: it reports its own moments and normalises by those that it is given."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from support.coordinator_stub import Conversation
from support.tensor_world import make_session

from esper_ab.contracts.messages import Assign, EpisodeFinished, Ready, Release
from esper_ab.contracts.records import Moments
from esper_ab.control.rules.pooling import pooled
from workers.ppo.normalise import ObservationNormaliser, RunningMoments
from workers.run import policy_file
from workers.run.session import Session
from workers.storage import state_bytes

SHARED = {"share_observation_norm": True, "episodes": 3}


def quiet(_step: int) -> None:
    """No one listens."""


def moments_of(rows: np.ndarray) -> Moments:
    running = RunningMoments(rows.shape[1], 0.0)
    running.merge(rows)
    return running.told()


def train_together(*sessions: Session, upto: int = 3) -> list[list[str]]:
    """Digests by session; every release carries the merged moments, as the coordinator's does."""
    digests: list[list[str]] = [[] for _ in sessions]
    for session in sessions:
        session.released(0, None)
    for episode in range(upto):
        for session, found in zip(sessions, digests, strict=True):
            found.append(session.train(episode, quiet, quiet).digest)
        told = [moments for session in sessions if (moments := session.observations()) is not None]
        for session in sessions:
            session.released(episode + 1, pooled(told) if session.observations() is not None else None)
    return digests


def test_moments_told_are_taken_to_the_bit() -> None:
    rng = np.random.default_rng(3)
    told = moments_of(rng.standard_normal((50, 7)))
    again = RunningMoments(7, 0.0)
    again.take(msgspec.json.decode(msgspec.json.encode(told), type=Moments))
    assert again.told() == told


def test_a_shared_normaliser_uses_what_was_applied_and_keeps_its_own_apart() -> None:
    rng = np.random.default_rng(4)
    own, others = rng.normal(5.0, 2.0, (40, 3)), rng.normal(-1.0, 3.0, (60, 3))
    normaliser, plain = ObservationNormaliser(3, shared=True), ObservationNormaliser(3)
    normaliser.moments.merge(own)
    raw = own[:4].astype(np.float32)
    assert (normaliser.normalise(raw) == plain.normalise(raw)).all()  # nothing applied yet: as it is, clipped
    normaliser.apply(moments_of(others))
    plain.moments.merge(others)
    assert (normaliser.normalise(raw) == plain.normalise(raw)).all()
    assert normaliser.moments.told() == moments_of(own)
    again = ObservationNormaliser(3, shared=True)
    again.load(normaliser.state())
    assert (again.normalise(raw) == normaliser.normalise(raw)).all()
    assert again.moments.told() == normaliser.moments.told()


def test_a_normaliser_of_its_own_takes_nothing_and_its_state_is_what_it_was() -> None:
    normaliser = ObservationNormaliser(3)
    with pytest.raises(ValueError, match="not shared"):
        normaliser.apply(moments_of(np.ones((2, 3))))
    assert set(normaliser.state()) == {"count", "mean", "squares"}
    with pytest.raises(ValueError, match="moments of 2 columns, expected 3"):
        ObservationNormaliser(3, shared=True).apply(moments_of(np.ones((2, 2))))


def test_sharing_couples_groups_from_the_second_episode_on() -> None:
    alone, _ = train_together(make_session(**SHARED), make_session(**SHARED, group="b"))
    mixed, other = train_together(make_session(**SHARED), make_session(**SHARED, group="b", mode="sparse"))
    assert alone[0] == mixed[0]
    assert alone[2] != mixed[2]
    plain, _ = train_together(make_session(episodes=3), make_session(episodes=3, group="b", mode="sparse"))
    assert plain[2] != mixed[2]
    assert mixed[0] != other[0]


def test_groups_with_equal_settings_stay_identical_and_a_controller_is_no_part_of_it() -> None:
    a, b, wait = train_together(
        make_session(**SHARED), make_session(**SHARED, group="b"), make_session(episodes=3, controller="wait")
    )
    assert a == b
    assert train_together(make_session(episodes=3, controller="wait")) == [wait]


def test_the_moments_shared_are_those_of_everything_both_have_observed() -> None:
    one, other = make_session(**SHARED), make_session(**SHARED, group="b", mode="sparse")
    train_together(one, other)
    for session in (one, other):
        assert session.agent is not None
        own, used = session.agent.observations.moments.told(), session.agent.observations.applied.told()
        assert own.count == 3 * 2 * 8  # episodes, environments, steps
        assert used.count == 2 * own.count
    assert one.agent.observations.applied.told() == other.agent.observations.applied.told()
    assert one.observations() != other.observations()


def test_a_saved_policy_keeps_the_normaliser_that_it_was_evaluated_with(tmp_path: Path) -> None:
    one, other = make_session(**SHARED), make_session(**SHARED, group="b", mode="sparse")
    train_together(one, other)
    one.evaluate(tmp_path, quiet)
    saved = policy_file.load(tmp_path / one.spec.policy_file).agent
    assert saved is not None
    assert saved.observations.applied.told() == one.agent.observations.applied.told()
    assert saved.observations.applied.told() != saved.observations.moments.told()


@pytest.mark.parametrize("point", [1, 2])
def test_a_run_taken_up_goes_on_with_its_own_moments_and_those_of_the_release(point: int) -> None:
    whole = [make_session(**SHARED), make_session(**SHARED, group="b", mode="sparse")]
    digests, _ = train_together(*whole)
    before = [make_session(**SHARED), make_session(**SHARED, group="b", mode="sparse")]
    train_together(*before, upto=point)
    released = before[0].agent.observations.applied.told()
    again = make_session(**SHARED)
    again.resume(state_bytes.from_bytes(state_bytes.to_bytes(before[0].state())))
    again.released(point, released)
    assert again.train(point, quiet, quiet).digest == digests[point]


def test_a_release_that_does_not_fit_the_orders_is_an_error() -> None:
    shared, plain = make_session(**SHARED), make_session()
    some = moments_of(np.ones((2, 3)))
    for session, point, observations in ((shared, 1, None), (shared, 0, some), (plain, 1, some), (shared, 4, some)):
        with pytest.raises(ValueError, match=f"point {point} was released with"):
            session.released(point, observations)
    with pytest.raises(ValueError, match="moments of 3 columns"):
        shared.released(1, some)


def test_a_worker_reports_the_moments_of_all_its_episodes(tmp_path: Path) -> None:
    with Conversation(tmp_path) as worker:
        worker.say(Assign(spec=make_session(**SHARED).spec))
        worker.hear(Ready)
        worker.say(Release(run="a/0", point=0))
        first = worker.hear(EpisodeFinished)
        assert first.observations.count == 2 * 8
        worker.say(Release(run="a/0", point=1, observations=first.observations))
        second = worker.hear(EpisodeFinished)
        assert second.observations.count == 2 * first.observations.count
    expected, _ = train_together(make_session(**SHARED), make_session(**SHARED, group="b"), upto=1)
    assert first.record.digest == expected[0]
