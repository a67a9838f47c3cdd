"""Settings of Gymnasium tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plans.requests import asked

from esper_ab.contracts.errors import UsageError

CARTPOLE = {"task": "gym:CartPole-v1"}


@given(total=st.integers(1, 10**7), steps=st.integers(1, 4096), n_envs=st.integers(1, 64))
def test_total_timesteps_are_rounded_up_to_whole_rollouts(total, steps, n_envs):
    experiment = asked(
        "env", "random", sets=("gym.rollout=continues",), total_timesteps=total, steps=steps, n_envs=n_envs, **CARTPOLE
    )
    rollout_steps = steps * n_envs
    assert total <= experiment.episodes * rollout_steps < total + rollout_steps


def test_total_timesteps_need_rollouts_of_fixed_length():
    with pytest.raises(UsageError, match="--total-timesteps and --episodes both set how long a run trains"):
        asked("env", "random", sets=("gym.rollout=resets",), total_timesteps=1000, episodes=3, **CARTPOLE)
    with pytest.raises(UsageError, match="the rollouts of group 'env' end with their episodes"):
        asked("env", "random", total_timesteps=1000, **CARTPOLE)


def test_the_outcome_named_return_equals_the_default():
    by_name = asked("env", "random", outcome="return", outcome_better="higher", **CARTPOLE)
    assert by_name.outcome == ""
    assert by_name == asked("env", "random", outcome_better="higher", **CARTPOLE)
    assert asked("env", "random", outcome="info:return", outcome_better="higher", **CARTPOLE).outcome == "info:return"
