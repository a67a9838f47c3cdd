"""What computes a policy is the kernel of the plan, built as the plan says, or nothing."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from support.ppo_agents import ARITHMETICS, TORCH

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic
from workers.actor_critic import Shape
from workers.native.build import Unusable
from workers.native.policy import NativePolicy
from workers.ppo.making import policy_of, possible
from workers.ppo.torch_policy import TorchPolicy

SHAPE = Shape(observation_width=3, head_sizes=(2,), hidden=4)


@pytest.mark.parametrize("hosts", ["kernel", "torch"])
@pytest.mark.parametrize("arithmetic", ARITHMETICS, ids=lambda one: one.kernel)
def test_the_kernel_computes_policies_whatever_trains_hosts(arithmetic: Arithmetic, hosts: str) -> None:
    policy = policy_of(SHAPE, RngPath(0), msgspec.structs.replace(arithmetic, hosts=hosts))
    assert type(policy) is (TorchPolicy if arithmetic == TORCH else NativePolicy)
    expected = policy_of(SHAPE, RngPath(0), TORCH).weights
    assert policy.weights.keys() == expected.keys()
    assert all(np.array_equal(policy.weights[name], weight) for name, weight in expected.items())


@pytest.mark.parametrize("arithmetic", ARITHMETICS[1:], ids=lambda one: one.kernel)
def test_another_build_than_the_plan_s_is_no_policy_and_torch_takes_its_place_in_an_evaluation(
    arithmetic: Arithmetic,
) -> None:
    other = msgspec.structs.replace(arithmetic, kernel_build="of somebody else")
    with pytest.raises(Unusable, match="another arithmetic"):
        policy_of(SHAPE, RngPath(0), other)
    assert possible(arithmetic) == (arithmetic, "")
    found, why = possible(other)
    assert found == TORCH
    assert "another arithmetic" in why
