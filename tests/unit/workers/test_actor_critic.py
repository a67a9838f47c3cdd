"""What all policies share: critics in new units, and states that belong to one network."""

import numpy as np
import pytest

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import Shape
from workers.ppo.torch_policy import TorchPolicy

SIZES = (6, 3, 7, 5)


def policy(**shape: object) -> TorchPolicy:
    sizes = {"observation_width": 10, "head_sizes": SIZES, "hidden": 16} | shape
    return TorchPolicy(Shape(**sizes), RngPath(0))


def test_rescaling_the_critic_scales_and_shifts_its_values():
    fresh_policy = policy()
    memory = np.zeros((2, 4, 16), dtype=np.float32)
    observations = np.random.default_rng(0).standard_normal((4, 10)).astype(np.float32)
    values_before = fresh_policy.values(observations, memory)
    fresh_policy.rescale_values(3.0, -2.0)
    np.testing.assert_allclose(fresh_policy.values(observations, memory), values_before * 3.0 - 2.0, rtol=1e-5)


@pytest.mark.parametrize("changes", [{"hidden": 8}, {"memory": "none"}, {"trunk": "separate"}, {"layer_norm": False}])
def test_a_state_of_another_network_is_refused(changes: dict[str, object]):
    with pytest.raises((LookupError, ValueError), match="weights of"):
        policy(**changes).load(policy().state())
