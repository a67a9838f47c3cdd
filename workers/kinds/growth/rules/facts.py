"""Derives a reward's facts from lifecycle, signals and measurement, the same for all reward modes.

Facts of decision t are taken before the decision is executed; differences are relative to the state at decision t - 1.
"""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.arrays import Bools, Floats, Ints, int_zeros
from workers.kinds.growth.facts import SeedFacts, StepFacts
from workers.kinds.growth.reward_terms import potential
from workers.kinds.growth.rules.lifecycle import Lifecycle
from workers.kinds.growth.rules.tracker import Measurement, Signals
from workers.kinds.growth.vocabulary import OP, SLOT, WAIT


def effective_seed_params(
    active: Bools, alpha: Floats, params: Ints, host_params: Ints, base_slot_rent_ratio: float
) -> Floats:
    """Return the effective seed parameters [E]: the sum, over live modules, of a base rent plus alpha * params.

    The base rent is `base_slot_rent_ratio * host_params` [E]. All [E, S]: `active` marks live modules, `alpha` is the
    present blend, and `params` is the number of trainable parameters of a module and its gate.
    """
    base = base_slot_rent_ratio * host_params[:, None]
    total: Floats = np.where(active, base + alpha * params, 0.0).sum(axis=1)
    return total


def alpha_delta_sq_sum(alpha: Floats, alpha_before: Floats, params_before: Ints, host_params: Ints) -> Floats:
    """Return Q [E]: sum over slots of (alpha - alpha_before)^2 * params_before / host_params; 0 if host_params is 0.

    All arrays are [E, S] except host_params [E]; `_before` means at the previous decision. alpha and params are 0 where
    no module is live, so a module's first step costs nothing and its removal costs its whole alpha.
    """
    weight = params_before / np.maximum(host_params, 1)[:, None]
    total: Floats = ((alpha - alpha_before) ** 2 * weight).sum(axis=1)
    return np.where(host_params > 0, total, 0.0)


class FactsMemory:
    """The state of the previous decision that the next facts need: potentials, alphas and parameters, [E, S].

    `host_params` is the size of one host; all environments grow the same one.
    """

    def __init__(self, n_envs: int, n_slots: int, host_params: int, settings: RewardSettings) -> None:
        self._host_params: Ints = np.full(n_envs, host_params, dtype=np.int64)
        self._settings = settings
        self._potential: Floats = np.zeros((n_envs, n_slots))
        self._alpha: Floats = np.zeros((n_envs, n_slots))
        self._params = int_zeros((n_envs, n_slots))

    def step_facts(
        self, lifecycle: Lifecycle, signals: Signals, measurement: Measurement, decisions: Ints, step: int
    ) -> StepFacts:
        """Return the facts of decision `step` and its `decisions` [E, head]; call once per step, before execution."""
        table = lifecycle.table
        present_mask = table.present
        alpha = np.where(present_mask, table.alpha, 0.0)
        params = np.where(present_mask, table.params, 0)
        seeds = self._seed_facts(lifecycle, measurement)
        facts = StepFacts(
            op=decisions[:, OP],
            slot=np.where(decisions[:, OP] == WAIT, -1, decisions[:, SLOT]),
            seeds=seeds,
            step=step,
            steps=lifecycle.rules.steps,
            val_acc=signals.val_acc,
            best_val_acc=signals.best_val_acc,
            acc_delta=signals.acc_delta,
            val_loss=signals.val_loss,
            loss_delta=signals.loss_delta,
            host_params=self._host_params,
            total_params=self._host_params + params.sum(axis=1),
            effective_seed_params=effective_seed_params(
                present_mask, alpha, params, self._host_params, self._settings.base_slot_rent_ratio
            ),
            alpha_delta_sq_sum=alpha_delta_sq_sum(alpha, self._alpha, self._params, self._host_params),
            fossilized=lifecycle.fossilized.copy(),
            contributing=lifecycle.contributing.copy(),
        )
        self._potential = potential(seeds, self._settings)
        self._alpha = alpha
        self._params = params
        return facts

    def _seed_facts(self, lifecycle: Lifecycle, measurement: Measurement) -> SeedFacts:
        """Return a copy of the facts per seed, because executing the decision changes the table."""
        table = lifecycle.table
        gain = measurement.val_acc - measurement.all_off_acc  # causal: the same host, the same samples
        improvement = np.where(lifecycle.alive, gain, 0.0)  # [E]; a diverged host has none
        return SeedFacts(
            present=table.present,
            stage=table.stage.copy(),
            previous_stage=table.previous_stage.copy(),
            epochs_in_stage=table.epochs_in_stage.copy(),
            age=table.age.copy(),
            contribution=measurement.contribution,
            total_improvement=np.repeat(improvement[:, None], len(lifecycle.slots), axis=1),
            interaction_sum=table.interaction_sum.copy(),
            acc_at_germination=table.acc_at_germination.copy(),
            potential_before=self._potential,
        )
