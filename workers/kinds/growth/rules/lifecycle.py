"""The life of every seed in every environment: executes decisions, advances ramps and cooldowns, counts events.

Order within one step: `record` the measurement, read `masks`, decide, `execute`, `end_step`. The network itself is
behind `Graft`; this module handles no tensor, reward or policy.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from esper_ab.contracts.records import SeedEvent
from workers.arrays import Bools, Floats, Ints, all_true, int_zeros
from workers.kinds.growth.rules.masks import CONTRIBUTING_POINTS, DecisionMasks, Rules, rampable, valid_operations
from workers.kinds.growth.rules.seeds import SeedTable, retarget, seed_id, tick, transition
from workers.kinds.growth.rules.tracker import Measurement
from workers.kinds.growth.vocabulary import (
    ALPHA_CURVE,
    ALPHA_SPEED,
    ALPHA_TARGET,
    ALPHA_TARGETS,
    BLENDING,
    CURVES,
    GERMINATED,
    HEADS,
    HOLDING,
    OP,
    PRUNED,
    SLOT,
    SPEEDS,
    STYLE,
    STYLES,
    TEMPOS,
    TRAINING,
    Op,
    Stage,
)

EMBARGO_EPOCHS = 5
COOLDOWN = EMBARGO_EPOCHS + 2  # step ends from a prune until the slot is empty: PRUNED, embargo, RESETTING
_VELOCITY_KEEP = 0.7

_STYLE_ALGORITHMS = np.array([algorithm for _, _, algorithm in STYLES], dtype=np.int64)
_STYLE_CURVES = np.array([curve for _, curve, _ in STYLES], dtype=np.int64)
_TARGETS = np.array(ALPHA_TARGETS)
_SPEEDS = np.array(SPEEDS)
_CURVES = np.array(CURVES, dtype=np.int64)

_Event = Literal["germinated", "advanced", "retargeted", "prune_scheduled", "pruned", "fossilized", "emptied"]


class Graft(Protocol):
    """Operations on the network. If an operation raises, the network, and hence the slot, is unchanged."""

    def germinate(self, env: int, slot: int, blueprint_index: int, algorithm: int) -> int:
        """Put a new module into an empty slot; return the number of trainable parameters of module and gate."""

    def set_algorithm(self, env: int, slot: int, algorithm: int) -> int:
        """Change how a module blends; only GATE has a gate. Return the same as `germinate`."""

    def drop(self, env: int, slot: int) -> None:
        """Remove the module, its gate and their optimiser state; the table still describes them during the call."""


class InvalidDecision(ValueError):
    """A decision that the masks do not allow."""


class Lifecycle:
    """Stages, ramps, cooldowns and counters of `n_envs` environments during one episode."""

    def __init__(self, n_envs: int, slots: tuple[str, ...], blueprints: tuple[str, ...], rules: Rules) -> None:
        self.slots = slots
        self.blueprints = blueprints
        self.rules = rules
        self.table = SeedTable.empty(n_envs, len(slots))
        self.alive = all_true(n_envs)
        self.val_acc: Floats = np.full(n_envs, np.nan)  # last recorded, percent
        self.germinated = int_zeros(n_envs)
        self.pruned = int_zeros(n_envs)
        self.fossilized = int_zeros(n_envs)
        self.contributing = int_zeros(n_envs)
        self.op_counts = int_zeros((n_envs, len(Op)))  # executed decisions
        self._serials = int_zeros(n_envs)  # seeds germinated so far, the serial of the next one
        self._shown: tuple[int, DecisionMasks] | None = None  # last masks and their step, while valid

    def stop(self, envs: Bools) -> None:
        """End the episode of diverged environments [E]: from now on only WAIT is valid, and nothing changes."""
        self.alive[envs] = False
        self._shown = None

    def record(self, measurement: Measurement) -> None:
        """Record a validation before the decision: ages, contributions and their velocities.

        From the second measurement on, velocity is the smoothed (0.7 old, 0.3 new) change of the contribution per
        epoch.
        """
        table = self.table
        self._shown = None
        self.val_acc = np.where(self.alive, measurement.val_acc, self.val_acc)
        seen_mask = table.present & self.alive[:, None]
        table.age[seen_mask] += 1
        table.epochs_in_stage[seen_mask] += 1
        measured_mask = seen_mask & ~np.isnan(measurement.contribution)
        repeated_mask = measured_mask & ~np.isnan(table.contribution)
        growth = measurement.contribution[repeated_mask] - table.contribution[repeated_mask]
        table.velocity[repeated_mask] = _VELOCITY_KEEP * table.velocity[repeated_mask] + (1.0 - _VELOCITY_KEEP) * growth
        table.contribution[measured_mask] = measurement.contribution[measured_mask]
        table.interaction_sum[seen_mask] = measurement.interaction_sum[seen_mask]

    def masks(self, step: int) -> DecisionMasks:
        """Return a snapshot of the masks of decision `step` (1-based); `execute` reuses it if nothing has changed."""
        valid_ops = valid_operations(self.table, self.rules, self.val_acc, self.alive, step)
        masks = DecisionMasks(self.table, valid_ops, len(self.blueprints))
        self._shown = step, masks
        return masks

    def execute(self, decisions: Ints, step: int, graft: Graft) -> list[SeedEvent]:
        """Execute one decision per environment, [E, head] in the order of HEADS; return the events.

        Raises InvalidDecision, before anything changes, if this step's masks forbid any of the decisions.
        """
        if self._shown is not None and self._shown[0] == step:
            masks = self._shown[1]
        else:
            masks = self.masks(step)
        permitted_mask = masks.permits(decisions)
        if not permitted_mask.all():
            env = int(np.argmin(permitted_mask))
            choices = zip(HEADS, decisions[env].tolist(), strict=True)
            decision = ", ".join(f"{head} {value}" for head, value in choices)
            raise InvalidDecision(f"environment {env}, step {step}: the masks do not allow {decision}")
        self._shown = None
        ops = decisions[:, OP]
        decided_ops = set(ops.tolist())
        at_slot = decisions[:, SLOT, None] == np.arange(len(self.slots))  # [E, S]
        changes: list[SeedEvent] = []
        for op, perform in (
            (Op.GERMINATE, self._germinate),
            (Op.SET_ALPHA_TARGET, self._retarget),
            (Op.PRUNE, self._prune),
            (Op.FOSSILIZE, self._fossilize),
            (Op.ADVANCE, self._advance),
        ):
            if op in decided_ops:
                changes += perform(at_slot & (ops == op)[:, None], decisions, step, graft)
        self.op_counts[self.alive, ops[self.alive]] += 1
        return changes

    def end_step(self, step: int, graft: Graft) -> list[SeedEvent]:
        """Advance ramps, complete prunes whose ramp has ended, and count cooldowns down."""
        table = self.table
        self._shown = None
        reached_mask = tick(table, (table.stage == BLENDING) & self.alive[:, None])
        changes = self._remove(reached_mask & table.frozen, step, graft)
        cooling = (table.cooldown_left > 0) & self.alive[:, None]
        if not cooling.any():
            return changes
        table.cooldown_left[cooling] -= 1
        self._transition(cooling & (table.stage == PRUNED), Stage.EMBARGOED)
        self._transition(cooling & (table.cooldown_left == 1), Stage.RESETTING)
        emptied_mask = cooling & (table.cooldown_left == 0)
        self._transition(emptied_mask, Stage.DORMANT)
        changes += self._events(emptied_mask, "emptied", step)
        table.serial[emptied_mask] = -1
        return changes

    # --- operations: `selected` [E, S], already permitted by the masks -----------------------------------------------

    def _germinate(self, slot_mask: Bools, decisions: Ints, step: int, graft: Graft) -> list[SeedEvent]:
        table = self.table
        env_numbers = np.arange(len(slot_mask))
        envs = np.flatnonzero(slot_mask.any(axis=1))
        for env in envs.tolist():
            _, slot, blueprint, style, tempo, target = decisions[env, : ALPHA_TARGET + 1].tolist()
            algorithm = int(_STYLE_ALGORITHMS[style])
            params = graft.germinate(env, slot, blueprint, algorithm)  # if this raises, the slot is unchanged
            self._transition(slot_mask & (env_numbers == env)[:, None], Stage.GERMINATED)
            table.blueprint[env, slot] = blueprint
            table.style[env, slot] = style
            table.algorithm[env, slot] = algorithm
            table.tempo[env, slot] = TEMPOS[tempo]
            table.germination_target[env, slot] = ALPHA_TARGETS[target]
            table.acc_at_germination[env, slot] = self.val_acc[env]
            table.params[env, slot] = params
            table.serial[env, slot] = self._serials[env]
            self._serials[env] += 1
        self.germinated[envs] += 1
        return self._events(slot_mask, "germinated", step)

    def _advance(self, slot_mask: Bools, _decisions: Ints, step: int, _graft: Graft) -> list[SeedEvent]:
        table = self.table
        starting_mask = slot_mask & (table.stage == GERMINATED)
        blending = slot_mask & (table.stage == TRAINING)
        holding_mask = slot_mask & (table.stage == BLENDING)
        self._transition(starting_mask, Stage.TRAINING)
        self._transition(blending, Stage.BLENDING)
        retarget(table, blending, table.germination_target, table.tempo, _STYLE_CURVES[table.style])
        self._transition(holding_mask, Stage.HOLDING)
        return self._events(slot_mask, "advanced", step)

    def _retarget(self, slot_mask: Bools, decisions: Ints, step: int, graft: Graft) -> list[SeedEvent]:
        table = self.table
        style = self._broadcast_to_slots(decisions[:, STYLE])
        algorithm = _STYLE_ALGORITHMS[style]
        target = _TARGETS[self._broadcast_to_slots(decisions[:, ALPHA_TARGET])]
        for env, slot in np.argwhere(slot_mask & (algorithm != table.algorithm)).tolist():
            table.params[env, slot] = graft.set_algorithm(env, slot, int(algorithm[env, slot]))
            table.algorithm[env, slot] = algorithm[env, slot]
            table.style[env, slot] = style[env, slot]
        self._transition(slot_mask & (table.stage == HOLDING) & (target < 1.0), Stage.BLENDING)
        retarget(table, slot_mask, target, *self._ramp(decisions))
        return self._events(slot_mask, "retargeted", step)

    def _prune(self, slot_mask: Bools, decisions: Ints, step: int, graft: Graft) -> list[SeedEvent]:
        """Prune at once or, where alpha is on and a speed was chosen, by a ramp to 0 with frozen seed parameters."""
        table = self.table
        steps, curve = self._ramp(decisions)
        scheduled_mask = slot_mask & rampable(table) & (steps > 0)
        changes: list[SeedEvent] = []
        if scheduled_mask.any():
            self._transition(scheduled_mask & (table.stage == HOLDING), Stage.BLENDING)
            retarget(table, scheduled_mask, np.zeros_like(table.alpha), steps, curve)
            table.frozen[scheduled_mask] = True
            changes += self._events(scheduled_mask, "prune_scheduled", step)
        return changes + self._remove(slot_mask & ~scheduled_mask, step, graft)

    def _fossilize(self, slot_mask: Bools, _decisions: Ints, step: int, _graft: Graft) -> list[SeedEvent]:
        self._transition(slot_mask, Stage.FOSSILIZED)
        self.fossilized += slot_mask.sum(axis=1)
        self.contributing += (slot_mask & (self.table.contribution >= CONTRIBUTING_POINTS)).sum(axis=1)
        return self._events(slot_mask, "fossilized", step)

    def _remove(self, slot_mask: Bools, step: int, graft: Graft) -> list[SeedEvent]:
        """Drop the modules of `slot_mask` and start the cooldown of their slots."""
        if not slot_mask.any():
            return []
        for env, slot in np.argwhere(slot_mask).tolist():
            graft.drop(env, slot)
        self._transition(slot_mask, Stage.PRUNED)
        self.table.alpha[slot_mask] = 0.0
        changes = self._events(slot_mask, "pruned", step)
        self.table.clear_module(slot_mask)
        self.table.cooldown_left[slot_mask] = COOLDOWN
        self.pruned += slot_mask.sum(axis=1)
        return changes

    # --- shapes ------------------------------------------------------------------------------------------------------

    def _transition(self, slot_mask: Bools, target: Stage) -> None:
        if slot_mask.any():
            transition(self.table, slot_mask, target, self.val_acc)

    def _broadcast_to_slots(self, per_env: Ints) -> Ints:
        """Broadcast [E] to [E, S]."""
        return np.broadcast_to(per_env[:, None], self.table.stage.shape)

    def _ramp(self, decisions: Ints) -> tuple[Ints, Ints]:
        """Return the epochs and curve of the ramp chosen by each environment, [E, S]."""
        steps = _SPEEDS[decisions[:, ALPHA_SPEED]]
        curve = _CURVES[decisions[:, ALPHA_CURVE]]
        return self._broadcast_to_slots(steps), self._broadcast_to_slots(curve)

    def _events(self, slot_mask: Bools, event: _Event, step: int) -> list[SeedEvent]:
        """Return one event per entry of `slot_mask`, from the current state of the table."""
        table = self.table
        changes = []
        for env, slot in np.argwhere(slot_mask).tolist():
            blueprint = ""
            if table.blueprint[env, slot] >= 0:
                blueprint = self.blueprints[int(table.blueprint[env, slot])]
            contribution: float | None = float(table.contribution[env, slot])
            if np.isnan(table.contribution[env, slot]):
                contribution = None
            changes.append(
                SeedEvent(
                    env=env,
                    step=step,
                    slot=self.slots[slot],
                    event=event,
                    seed_id=seed_id(env, int(table.serial[env, slot])),
                    blueprint=blueprint,
                    stage=Stage(int(table.stage[env, slot])).name,
                    alpha=float(table.alpha[env, slot]),
                    contribution=contribution,
                    params=int(table.params[env, slot]),
                )
            )
        return changes
