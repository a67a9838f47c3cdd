"""Selects the implementation of a policy, only by the arithmetic in the run's plan."""

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
    """Create a fresh policy; Unusable if the kernel in `arithmetic` is not available here or was built differently."""
    library.check(arithmetic)
    if arithmetic.kernel == "torch":
        return TorchPolicy(shape, rng)
    return NativePolicy(shape, rng, library.load(arithmetic.kernel))


def possible(planned_arithmetic: Arithmetic) -> tuple[Arithmetic, str]:
    """Return the planned arithmetic as far as this machine supports it, and why the kernel is unusable, or ""."""
    try:
        library.check(planned_arithmetic)
    except Unusable as error:
        return msgspec.structs.replace(planned_arithmetic, kernel="torch", kernel_build=""), str(error)
    return planned_arithmetic, ""
