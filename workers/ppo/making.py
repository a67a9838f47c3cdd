"""Which implementation computes a policy: by the arithmetic of its run's plan, and nothing else."""

from __future__ import annotations

import msgspec

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic
from workers.actor_critic import ActorCritic, Shape
from workers.native import library
from workers.native.build import Unusable
from workers.native.policy import NativePolicy
from workers.ppo.torch_policy import TorchPolicy


def policy_of(shape: Shape, rng: RngPath, arithmetic: Arithmetic) -> ActorCritic:
    """Make a fresh policy; Unusable when the kernel of `arithmetic` cannot be had here, built as it says."""
    library.check(arithmetic)
    if arithmetic.kernel == "torch":
        return TorchPolicy(shape, rng)
    return NativePolicy(shape, rng, library.load(arithmetic.kernel))


def possible(planned: Arithmetic) -> tuple[Arithmetic, str]:
    """Return the arithmetic of a run as far as it can be had here, and why its kernel cannot, or ""."""
    try:
        library.check(planned)
    except Unusable as error:
        return msgspec.structs.replace(planned, kernel="torch", kernel_build=""), str(error)
    return planned, ""
