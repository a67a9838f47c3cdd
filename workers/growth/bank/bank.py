"""The bank: hosts and seeds of many environments on one device, trained and validated by one kernel per layer.

Structure of arrays: parameters are stacked on a leading environment axis (stack.py), seeds are batched over the
environments that hold the same blueprint in the same slot. It knows what is where from the seed table; it decides
nothing about lifecycles, rewards or measurements.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from esper_ab.contracts import catalog
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import GrowthSettings
from workers.datasets.task import Task
from workers.facts import Bools, Floats, Ints
from workers.growth.bank.blend import Blend, gate_params
from workers.growth.bank.chains import ends_in
from workers.growth.bank.configurations import Pass, plan_pass
from workers.growth.bank.host import (
    BatchStatistics,
    MeasuredLevel,
    channels,
    fresh_statistics,
    head_forward,
    host_params,
)
from workers.growth.bank.loss_scale import LossScale, PartScale
from workers.growth.bank.rows import put_rows
from workers.growth.bank.slot_seeds import SeedGroup, SlotSeeds
from workers.growth.bank.slot_step import SlotStep
from workers.growth.bank.split import DeviceSplit
from workers.growth.bank.stack import SGD, Borrowed, Optimiser, Stack
from workers.growth.bank.training_step import LevelStep, TrainingStep, side_by_side
from workers.growth.rules.seeds import SeedTable
from workers.layers import device as _device
from workers.layers.blueprint import Blueprint
from workers.layers.convolution import as_image
from workers.vocabulary import Stage

_CACHED_BYTES = 4 << 20  # of the widest activation while training: more environments at once are slower, not faster
_EVALUATION_CHUNK = 16, 128  # samples per forward pass on a CPU, at least and at most
_GPU_BYTES = 128 << 20  # of the widest activation of a forward pass on a GPU; several of them are there at a time
COMPUTED_IN = {"bf16": torch.bfloat16, "fp16": torch.float16}  # growth.amp -> activations of host training
_IN_FORWARD = (Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED)


@dataclass(frozen=True)
class PassResult:
    """What one validation or test pass measured. R rows of `plan`, n live environments."""

    plan: Pass
    active: Bools  # [n, S] seeds that were on in the real networks
    accuracy: Floats  # [R] percent
    real_accuracy: Floats  # [n] of the real networks
    loss: Floats  # [n] per-sample mean of the real networks


@dataclass(frozen=True)
class Batches:
    """What one epoch of n rows is trained on: each row's `order` [n, N] of the split, and float16's scale."""

    split: DeviceSplit
    order: Tensor
    scale: PartScale | None


@dataclass(frozen=True)
class SlotLoan:
    """A slot's seeds during one epoch."""

    seeds: SlotSeeds
    loans: list[Borrowed]  # of every group
    step: SlotStep


Slots = dict[int, SlotLoan]  # by level


def _with_a_say(overflowed: list[Tensor | None], positions: list[Tensor], sound: Tensor) -> Tensor:
    """Rows that overflowed, of hosts [n] and then of each group of seeds, whose environment is `sound` [n]."""
    at = [torch.arange(len(sound), device=sound.device), *positions]
    return torch.cat([rows & sound[i] for rows, i in zip(overflowed, at, strict=True) if rows is not None])


class Bank:
    """`envs` names the environments of this bank; row i of everything belongs to envs[i]."""

    def __init__(
        self, task: Task, slots: tuple[str, ...], envs: Ints, settings: GrowthSettings, like: Tensor
    ) -> None:
        """`like` fixes device and precision; ValueError when a blueprint or a slot does not exist."""
        self.envs = envs
        self._spec = task.host
        self._rule = settings
        self._device, self._dtype = like.device, like.dtype
        self._computed = like.dtype if settings.amp == "off" else COMPUTED_IN[settings.amp]  # in host training
        self._levels = tuple(task.slots.index(slot) for slot in slots)  # of the enabled slots
        self._blueprints: tuple[Blueprint, ...] = tuple(
            catalog.entry("workers.blueprints", name, "BLUEPRINT") for name in settings.blueprints
        )
        # Where a blueprint stands among others in a slot: those that end alike are neighbours; none is before all.
        kinds = [(ends_in(blueprint), index) for index, blueprint in enumerate(self._blueprints)]
        self._place = np.array([*(sorted(kinds).index(kind) for kind in kinds), -1])
        self.host = Stack(host_params(task.host), len(envs), self._device, self._dtype)
        self.statistics: list[BatchStatistics] = []
        self._seeds: dict[tuple[int, int], Stack] = {}

    @property
    def host_size(self) -> int:
        """Trainable parameters of one host."""
        return self.host.width

    # --- life and death of modules ----------------------------------------------------------------------------------

    def begin_episode(self, paths: list[RngPath]) -> None:
        """Fresh hosts, row i from the address paths[i]; every slot empty."""
        draws = np.stack([(path / "host-init").generator().random(self.host.width) for path in paths])
        self.host.birth(slice(None), draws)
        self.statistics = fresh_statistics(self._spec, len(self.envs), self._device, self._dtype)
        self._seeds.clear()

    def _stack(self, slot: int, blueprint: int) -> Stack:
        """Seeds of one blueprint in one slot, each with its gate; made when first needed."""
        key = (slot, blueprint)
        if key not in self._seeds:
            width = channels(self._spec, self._levels[slot])
            specs = (*self._blueprints[blueprint].params(width), *gate_params(width))
            self._seeds[key] = Stack(specs, len(self.envs), self._device, self._dtype)
        return self._seeds[key]

    def _gate_size(self, slot: int) -> int:
        return sum(spec.size for spec in gate_params(channels(self._spec, self._levels[slot])))

    def sizes(self, slot: int, blueprint: int) -> tuple[int, int]:
        """Trainable parameters of one module in `slot`, and of its gate."""
        gate = self._gate_size(slot)
        return self._stack(slot, blueprint).width - gate, gate

    def germinate(self, row: int, slot: int, blueprint: int, path: RngPath) -> tuple[int, int]:
        """A new seed, gate included, with its optimiser state at zero. Returns `sizes`."""
        module, gate = self.sizes(slot, blueprint)
        draws = [(path / "seed-init").generator().random(module), (path / "gate-init").generator().random(gate)]
        self._stack(slot, blueprint).birth(row, np.concatenate(draws))
        return module, gate

    def open_gate(self, row: int, slot: int, blueprint: int, path: RngPath) -> None:
        """A new gate for a living seed that turns to GATE; its module is untouched."""
        draws = (path / "gate-init").generator().random(self._gate_size(slot))
        self._stack(slot, blueprint).birth_tail(row, draws)

    def drop(self, row: int, slot: int, blueprint: int) -> None:
        """Remove a seed with everything its optimiser knew."""
        self._stack(slot, blueprint).clear(row)

    # --- which rows hold what ---------------------------------------------------------------------------------------

    def _seeds_in(self, table: SeedTable, slot: int, rows: Ints, on: Bools) -> SlotSeeds:
        """Seeds of `slot` over activation rows that show bank rows `rows` [R], where `on` [R]."""
        envs = self.envs[rows]
        blueprint = np.where(on & np.isin(table.stage[envs, slot], _IN_FORWARD), table.blueprint[envs, slot], -1)
        at = np.argsort(self._place[blueprint], kind="stable")[np.count_nonzero(blueprint < 0) :]  # group after group
        cells = (envs[at], slot)
        groups = []
        for index in sorted(set(blueprint[at].tolist()), key=self._place.__getitem__):
            members = at[blueprint[at] == index]
            frozen = table.frozen[envs[members], slot]
            groups.append(
                SeedGroup(
                    blueprint=self._blueprints[index],
                    stack=self._stack(slot, int(index)),
                    members=self._index(rows[members]),
                    trained=self._index(~frozen) if frozen.any() else None,
                    fossils=bool((table.stage[envs[members], slot] == Stage.FOSSILIZED).any()),
                )
            )
        blend = Blend.of(table.stage[cells], table.alpha[cells], table.algorithm[cells], self._like(slot))
        if np.array_equal(at, np.arange(len(rows))):
            return SlotSeeds(tuple(groups), None, blend)
        neighbours = bool(len(at)) and np.array_equal(at, np.arange(at[0], at[0] + len(at)))
        return SlotSeeds(tuple(groups), slice(at[0], at[0] + len(at)) if neighbours else self._index(at), blend)

    def _like(self, slot: int) -> Tensor:
        """Device, precision and channels of a slot's activations."""
        return self.host.values.new_empty(0, channels(self._spec, self._levels[slot]))

    def _index(self, values: Ints | Bools) -> Tensor:
        """On the device. The array is copied before this returns, or while it does: nobody waits for the device."""
        return torch.from_numpy(np.ascontiguousarray(values)).to(self._device, non_blocking=True)

    # --- training ---------------------------------------------------------------------------------------------------

    def train_epoch(
        self, table: SeedTable, rows: Ints, split: DeviceSplit, order: Ints, loss_scale: LossScale | None = None
    ) -> tuple[Floats, Floats]:
        """One pass of host and seed SGD over `split` for bank rows `rows` [n], each in its own `order` [n, N].

        The loss is the sum over environments of per-sample means: environments never scale each other's gradients.
        Returns per-sample mean loss [n] and accuracy in percent [n], both in training mode. Other rows are untouched.
        `loss_scale`: the run's, with float16. The device is waited for once, at the end.
        """
        rows_at_once = self._rows_at_once(split)
        arranged = self._arranged(table, rows)
        pieces = [arranged[start : start + rows_at_once] for start in range(0, len(rows), rows_at_once)]
        scales = [None if loss_scale is None else loss_scale.part(self.host.values) for _ in pieces]
        parts = [
            self._train_rows(table, rows[piece], split, order[piece], scale)
            for piece, scale in zip(pieces, scales, strict=True)
        ]
        ended = [scale.scale.view(1) for scale in scales if scale is not None]
        found = torch.cat([torch.cat(parts, 1).flatten(), *ended]).cpu().double().numpy()
        if loss_scale is not None:
            for value in found[2 * len(rows) :]:
                loss_scale.part_ended(float(value), -(-order.shape[1] // self._rule.batch_size))
        measured = np.empty((2, len(rows)))
        measured[:, arranged] = found[: 2 * len(rows)].reshape(2, -1)
        return measured[0], measured[1]

    def _arranged(self, table: SeedTable, rows: Ints) -> Ints:
        """Positions in `rows` such that seeds of a kind are neighbours, in the first slots if not in all."""
        kinds = self._place[self._in_forward(table, rows)]  # [n, S]
        return np.lexsort(kinds.T[::-1]) if kinds.shape[1] else np.arange(len(rows))

    def _in_forward(self, table: SeedTable, rows: Ints) -> Ints:
        """[n, S] blueprints of the seeds that take part in the forward pass of bank rows `rows`, -1 where none does."""
        envs = self.envs[rows]
        return np.where(np.isin(table.stage[envs], _IN_FORWARD), table.blueprint[envs], -1)

    def _rows_at_once(self, split: DeviceSplit) -> int:
        """How many environments train side by side: as many as keep the first slot's activation in the cache.

        By shape alone. On a GPU all of them: there a step costs its launches.
        """
        return self._fitting(split, channels(self._spec, 0), min(1, self._spec.pools))

    def _fitting(self, split: DeviceSplit, width: int, halvings: int) -> int:
        """How many environments' activations of `width` channels, so often pooled, fit the cache together."""
        if not _device.is_cpu(self._device):
            return sys.maxsize
        samples, _, height, side = split.x.shape
        numbers = min(samples, self._rule.batch_size) * (height >> halvings) * (side >> halvings) * width
        return max(1, int(_CACHED_BYTES // (numbers * self._computed.itemsize)))

    def _train_rows(
        self, table: SeedTable, rows: Ints, split: DeviceSplit, order: Ints, scale: PartScale | None
    ) -> Tensor:
        """train_epoch of rows whose activations fit the cache together; mean loss and accuracy [2, n]."""
        index = self._index(rows)
        host = self.host.borrow(index, None)
        statistics = [BatchStatistics(s.mean[index], s.var[index]) for s in self.statistics]
        everyone = np.ones(len(rows), dtype=bool)
        slots: Slots = {}
        for slot, level in enumerate(self._levels):
            seeds = self._seeds_in(table, slot, rows, everyone)
            idle = self._gate_size(slot) if seeds.blend.gated is None else 0  # a gate that nobody looks through
            single = max(split.x.shape[2:]) >> min(level + 1, self._spec.pools) == 1
            loans = [group.stack.borrow(group.members, group.trained, idle, single) for group in seeds.groups]
            slots[level] = SlotLoan(seeds, loans, seeds.step([loan.leaves for loan in loans]))
        batches = Batches(split, self._index(order), scale)
        measured = self._sgd(host, statistics, slots, batches)
        self.host.give_back(index, host)
        for mine, theirs in zip(self.statistics, statistics, strict=True):
            put_rows(index, [(mine.mean, theirs.mean), (mine.var, theirs.var)])
        for slot_loan in slots.values():
            for group, borrowed in zip(slot_loan.seeds.groups, slot_loan.loans, strict=True):
                group.stack.give_back(group.members, borrowed)
        return measured

    def _sgd(self, host: Borrowed, statistics: list[BatchStatistics], slots: Slots, batches: Batches) -> Tensor:
        """All minibatches of one epoch; mean loss and accuracy in percent [2, n].

        The gradient of softmax and cross entropy at the logits is written out, softmax(logits) − onehot(y), over the
        batch's size; what the losses themselves were is worked out once, from the logits of the whole epoch.
        """
        rule, split, order, scale = self._rule, batches.split, batches.order, batches.scale
        host_rule = SGD(rule.host_lr, rule.momentum, rule.weight_decay, rule.max_grad_norm)
        seed_rule = SGD(rule.seed_lr, rule.momentum, 0.0, rule.max_grad_norm)
        hosts = Optimiser([host], host_rule)
        seeds = Optimiser([loan for slot in slots.values() for loan in slot.loans], seed_rule)
        theirs = [member.grads for slot in slots.values() for member in slot.step.members]
        positions = [at for slot in slots.values() for at in slot.seeds.positions()] if scale is not None else []
        step = self._step(host, statistics, slots, batches)
        n, samples = order.shape
        labels = split.y[order]  # [n, N]
        every = split.x.new_empty(n, self._spec.classes, samples)  # logits of the epoch
        classes = torch.arange(self._spec.classes, device=self._device)[:, None]
        one_hot = (labels[:, None] == classes).to(self._dtype)  # [n,classes,N]
        images = split.images(self._computed)
        for start in range(0, samples, rule.batch_size):
            now = slice(start, min(start + rule.batch_size, samples))
            batch = order[:, now]  # [n,B]

            def pick(rows: slice, batch: Tensor = batch) -> Tensor:
                return side_by_side(images, batch[rows])

            logits = step.forward(pick)  # [n,classes,B]
            every[:, :, now] = logits
            error = torch.softmax(logits, 1).sub_(one_hot[:, :, now]).div_(batch.shape[1])
            if scale is not None:
                error *= scale.scale
            overflowed = hosts.step([step.backward(error)], scale) + seeds.step(theirs, scale)
            if scale is not None:
                sound = torch.isfinite(logits).all(2).all(1)  # [n]
                scale.after_step(_with_a_say(overflowed, positions, sound))
        # Not cross_entropy: torch has no deterministic one for samples behind classes on a GPU.
        loss = -F.log_softmax(every, 1).gather(1, labels[:, None]).mean((1, 2))
        correct = (every.max(1).indices == labels).to(self._dtype).mean(1)  # argmax across the memory is slow
        return torch.stack([loss, 100.0 * correct])

    def _step(self, host: Borrowed, statistics: list[BatchStatistics], slots: Slots, batches: Batches) -> TrainingStep:
        levels = []
        for level in range(self._spec.levels):
            at_once = self._fitting(batches.split, channels(self._spec, level), min(level, self._spec.pools))
            levels.append(LevelStep(host.leaves, level, self._spec, statistics[level], at_once))
        return TrainingStep(host.leaves, levels, {level: slot.step for level, slot in slots.items()})

    # --- measuring --------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def measure(self, table: SeedTable, rows: Ints, split: DeviceSplit, *, ablate: bool) -> PassResult:
        """Evaluation-mode pass of bank rows `rows` [n] over `split`, all ablations when `ablate`. Mutates nothing."""
        envs = self.envs[rows]
        acting = np.isin(table.stage[envs], _IN_FORWARD[1:]) & (table.alpha[envs] > 0.0)  # [n, S]
        plan = plan_pass(acting, ablate)
        hosts, seeds = self._measured_parts(table, rows, acting, plan)
        final = rows[plan.keys >> plan.n_slots]
        head = self.host.read(self._index(final))
        parents = [self._index(slot.parent) if slot.widens else None for slot in plan.slots]
        real = plan.real_rows()
        shown = self._index(real)
        correct = torch.zeros(len(final), device=self._device, dtype=torch.int64)
        loss = torch.zeros(len(rows), device=self._device, dtype=self._dtype)
        samples = len(split.y)
        samples_at_once = self._samples_at_once(split, [level.hosts for level in hosts])
        for start in range(0, samples, samples_at_once):
            x, y = split.x[start : start + samples_at_once], split.y[start : start + samples_at_once]
            h = x  # the same for all: one convolution with every kernel
            for level in range(self._spec.levels):
                h = hosts[level].forward(as_image(h), hosts[level].hosts) if level else hosts[0].forward(x, 1)
                if level in self._levels:
                    slot = self._levels.index(level)
                    parent = parents[slot]
                    if parent is not None:
                        h = h.index_select(3, parent)
                    h = seeds[slot].forward(h)
            logits = head_forward(h, head)  # [R,B,classes]
            correct += (logits.argmax(2) == y).sum(1)
            loss += F.cross_entropy(
                logits.index_select(0, shown).flatten(0, 1), y.expand(len(rows), -1).flatten(), reduction="none"
            ).view(len(rows), -1).sum(1)
        accuracy = 100.0 * correct.cpu().double().numpy() / samples
        return PassResult(plan, acting, accuracy, accuracy[real], loss.cpu().double().numpy() / samples)

    def _samples_at_once(self, split: DeviceSplit, hosts: list[int]) -> int:
        """Samples of one forward pass of so many hosts in each level, by shape alone.

        On a CPU the first activation stays in the cache. On a GPU a pass costs its launches, and only memory ends it.
        """
        pixels, each = split.x[0, 0].numel(), split.x.element_size()
        if not _device.is_cpu(self._device):
            quarters = [min(level, self._spec.pools) for level in range(len(hosts))]
            widest = max(n * channels(self._spec, b) * pixels >> 2 * quarters[b] for b, n in enumerate(hosts))
            return max(1, _GPU_BYTES // (widest * each))
        least, most = _EVALUATION_CHUNK
        return min(most, max(least, _CACHED_BYTES // (hosts[0] * pixels * channels(self._spec, 0) * each)))

    def _measured_parts(
        self, table: SeedTable, rows: Ints, acting: Bools, plan: Pass
    ) -> tuple[list[MeasuredLevel], list[SlotStep]]:
        """Per level the host parameters of the rows that reach it, per slot the seeds of the rows behind it."""
        hosts: list[MeasuredLevel] = []
        seeds: list[SlotStep] = []
        current = np.arange(len(rows), dtype=np.int64)  # position in `rows` of each activation row
        for level in range(self._spec.levels):
            index = self._index(rows[current])
            moments = self.statistics[level]
            own = BatchStatistics(moments.mean[index], moments.var[index])
            hosts.append(MeasuredLevel.of(self.host.read(index), self._spec, level, own))
            if level in self._levels:
                slot = self._levels.index(level)
                widening = plan.slots[slot]
                current = widening.env
                found = self._seeds_in(table, slot, rows[current], widening.on & acting[current, slot])
                seeds.append(found.step([group.stack.read(group.members) for group in found.groups]))
        return hosts, seeds
