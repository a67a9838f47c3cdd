"""The two facts for rewards that are computed from the slots: rent and shock. Pure and stateless."""

from __future__ import annotations

import numpy as np

from workers.facts import Bools, Floats, Ints


def effective_seed_params(
    active: Bools, alpha: Floats, params: Ints, host_params: Ints, base_slot_rent_ratio: float
) -> Floats:
    """Return E [E]: per live module a base rent of `base_slot_rent_ratio * host_params` plus alpha * params.

    active, alpha, params [E, S]: alpha in effect, trainable parameters of module and gate; host_params [E]. Entries
    where `active` is False are ignored.
    """
    base = base_slot_rent_ratio * host_params[:, None]
    total: Floats = np.where(active, base + alpha * params, 0.0).sum(axis=1)
    return total


def alpha_delta_sq_sum(alpha: Floats, alpha_before: Floats, params_before: Ints, host_params: Ints) -> Floats:
    """Return Q [E]: sum over slots of (alpha - alpha_before)^2 * params_before / host_params; 0 without a host.

    All [E, S] except host_params [E]; `_before`: at the previous decision. alpha and params are 0 where no module is
    live, so a module's first step costs nothing and its removal costs its whole alpha.
    """
    weight = params_before / np.maximum(host_params, 1)[:, None]
    total: Floats = ((alpha - alpha_before) ** 2 * weight).sum(axis=1)
    return np.where(host_params > 0, total, 0.0)
