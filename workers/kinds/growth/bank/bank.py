"""The bank: hosts and seeds of many environments on one device, trained and validated by one kernel per layer.

Structure of arrays: parameters are stacked on a leading environment axis (stack.py), and seeds are batched over the
environments that hold the same blueprint in the same slot. The seed table tells the bank where each seed is; the bank
decides nothing about lifecycles, rewards or measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import GrowthSettings, HostKernel
from workers.kinds.growth.bank import network
from workers.kinds.growth.bank.configurations import Pass, plan_pass
from workers.kinds.growth.bank.loss_scale import LossScales, Scaling
from workers.kinds.growth.bank.native import Grown, NativeStep
from workers.kinds.growth.bank.network import (
    BatchStatistics,
    Blend,
    SeedGroup,
    Slot,
    SlotSeeds,
    channels,
    fresh_statistics,
    gate_params,
    host_params,
    side_by_side,
)
from workers.kinds.growth.bank.stack import (
    SGD,
    Borrowed,
    Optimiser,
    Places,
    Stack,
    births,
    put_rows,
)
from workers.kinds.growth.catalogues import blueprint_named
from workers.kinds.growth.datasets.task import Task
from workers.kinds.growth.facts import Bools, Floats, Ints
from workers.kinds.growth.layers import device as _device
from workers.kinds.growth.layers.blueprint import Blueprint, Params
from workers.kinds.growth.rules.seeds import SeedTable
from workers.kinds.growth.samples import DeviceSplit
from workers.kinds.growth.vocabulary import Stage
from workers.native.library import load

_COMPUTED_IN = {"bf16": torch.bfloat16, "fp16": torch.float16}  # growth.amp -> precision of host training
_IN_FORWARD = (Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED)


@dataclass(frozen=True)
class PassResult:
    """Results of one validation or test pass with the R rows of `plan`, for n live environments."""

    plan: Pass
    active: Bools  # [n, S] seeds that were on in the real networks
    accuracy: Floats  # [R] percent
    real_accuracy: Floats  # [n] of the real networks
    loss: Floats  # [n] per-sample mean of the real networks


@dataclass(frozen=True)
class Epoch:
    """Data and borrowed parameters for training n rows for one epoch."""

    split: DeviceSplit
    order: Tensor  # [n, N] of each row
    host: Borrowed
    statistics: list[BatchStatistics]
    slots: dict[int, tuple[SlotSeeds, list[Borrowed]]]  # level -> seeds, and a loan for each group
    scaling: Scaling | None  # for float16


class Bank:
    """Hosts and seeds of the environments `envs`; row i of everything belongs to envs[i]."""

    def __init__(
        self,
        task: Task,
        slots: tuple[str, ...],
        envs: Ints,
        settings: GrowthSettings,
        template: Tensor,
        kernel: HostKernel = "torch",
    ) -> None:
        """Create a bank on the device, and in the precision, of `template`.

        Raises ValueError if a blueprint or slot does not exist, and Unusable if the kernel is missing.
        """
        self.envs = envs
        self._spec = task.host
        self._rule = settings
        self._device = template.device
        self._dtype = template.dtype
        self._computed = _COMPUTED_IN.get(settings.amp, template.dtype)  # in host training
        self._levels = tuple(task.slots.index(slot) for slot in slots)  # of the enabled slots
        self._blueprints: tuple[Blueprint, ...] = tuple(blueprint_named(name) for name in settings.blueprints)
        self.host = Stack(host_params(task.host), len(envs), self._device, self._dtype)
        self.statistics: list[BatchStatistics] = []
        self.loss_scales: LossScales | None = None  # for float16
        self._seeds: dict[tuple[int, int], Stack] = {}
        self._newborn: list[tuple[Stack, int | slice, Floats]] = []
        self._native: NativeStep | None = None  # what trains and measures in place of torch
        if kernel != "torch":
            self._native = NativeStep(load(kernel), task, self._levels, self._blueprints, settings)

    # --- life and death of modules ----------------------------------------------------------------------------------

    def begin_episode(self, paths: list[RngPath]) -> None:
        """Start an episode with empty slots and fresh hosts; the host of row i is drawn at paths[i]."""
        draws = np.stack([(path / "host-init").generator().random(self.host.width) for path in paths])
        births([(self.host, slice(None), draws)])
        self.statistics = fresh_statistics(self._spec, len(self.envs), self._device, self._dtype)
        self._seeds.clear()
        if self._rule.amp == "fp16":
            self.loss_scales = LossScales.fresh(len(self.envs), self.host.values)

    def _stack(self, slot: int, blueprint: int) -> Stack:
        """Return the stack of a blueprint's seeds and gates in one slot; create the stack when it is first needed."""
        key = (slot, blueprint)
        if key not in self._seeds:
            width = channels(self._spec, self._levels[slot])
            specs = (*self._blueprints[blueprint].params(width), *gate_params(width))
            self._seeds[key] = Stack(specs, len(self.envs), self._device, self._dtype)
        return self._seeds[key]

    def _gate_size(self, slot: int) -> int:
        return sum(spec.size for spec in gate_params(channels(self._spec, self._levels[slot])))

    def sizes(self, slot: int, blueprint: int) -> tuple[int, int]:
        """Return the numbers of trainable parameters of one module in `slot` and of its gate."""
        gate = self._gate_size(slot)
        return self._stack(slot, blueprint).width - gate, gate

    def germinate(self, row: int, slot: int, blueprint: int, path: RngPath) -> tuple[int, int]:
        """At the next `settle`, create a seed and its gate, with zero optimiser state; return `sizes`."""
        module, gate = self.sizes(slot, blueprint)
        module_draws = (path / "seed-init").generator().random(module)
        gate_draws = (path / "gate-init").generator().random(gate)
        self._newborn.append((self._stack(slot, blueprint), row, np.concatenate([module_draws, gate_draws])))
        return module, gate

    def open_gate(self, row: int, slot: int, blueprint: int, path: RngPath) -> None:
        """At the next `settle`, create a gate for a live seed that changes to GATE; the seed's module is unchanged."""
        draws = (path / "gate-init").generator().random(self._gate_size(slot))
        self._newborn.append((self._stack(slot, blueprint), row, draws))

    def settle(self) -> None:
        """Initialise a decision's new modules and gates with one upload. Training and measuring call this first."""
        if self._newborn:
            births(self._newborn)
            self._newborn.clear()

    def drop(self, row: int, slot: int, blueprint: int) -> None:
        """Remove a seed and its optimiser state."""
        self._stack(slot, blueprint).clear(row)

    # --- which rows hold what ---------------------------------------------------------------------------------------

    def _slot_seeds(self, table: SeedTable, slot: int, rows: Ints, on_mask: Bools) -> SlotSeeds:
        """Return the seeds of `slot` that are on, for the activation rows that belong to bank rows `rows` [R].

        `on_mask` [R]: the activation rows in which the seed is on.
        """
        envs = self.envs[rows]
        blueprint = np.where(on_mask & np.isin(table.stage[envs, slot], _IN_FORWARD), table.blueprint[envs, slot], -1)
        row_order = np.argsort(blueprint, kind="stable")[np.count_nonzero(blueprint < 0) :]  # group after group
        cells = (envs[row_order], slot)
        groups = []
        for index in np.unique(blueprint[row_order]):
            members = row_order[blueprint[row_order] == index]
            frozen_mask = table.frozen[envs[members], slot]
            trained_mask = self._index(~frozen_mask) if frozen_mask.any() else None
            groups.append(
                SeedGroup(
                    blueprint=self._blueprints[index],
                    stack=self._stack(slot, int(index)),
                    members=self._index(rows[members]),
                    trained=trained_mask,
                )
            )
        blend = Blend.of(table.stage[cells], table.alpha[cells], table.algorithm[cells], self.host.values)
        all_in_order = np.array_equal(row_order, np.arange(len(rows)))
        row_places = Places.of(self._index(row_order), len(rows)) if groups and not all_in_order else None
        return SlotSeeds(tuple(groups), row_places, blend)

    def _index(self, values: Ints | Bools) -> Tensor:
        """Copy an array to the device. The caller may reuse the array at once, without waiting for the device."""
        return torch.from_numpy(np.ascontiguousarray(values)).to(self._device, non_blocking=True)

    # --- training ---------------------------------------------------------------------------------------------------

    def train_epoch(self, table: SeedTable, rows: Ints, split: DeviceSplit, order: Ints) -> tuple[Floats, Floats]:
        """Train hosts and seeds of bank rows `rows` [n] for one SGD pass over `split`, each in its own `order` [n, N].

        The loss is the sum over environments of per-sample means, so no environment scales another's gradients. Return
        per-sample mean loss [n] and accuracy in percent [n], both in training mode. Other rows are unchanged.
        Synchronises with the device once, at the end.
        """
        self.settle()
        if self._native is not None:
            takes_part = self._forward_blueprints(table, rows) >= 0
            return self._native.train(self._grown(table, rows), takes_part, split, order)
        held_blueprints = self._forward_blueprints(table, rows)  # [n, S]
        if held_blueprints.size:
            row_order = np.lexsort(held_blueprints.T[::-1])  # the first slot's groups together
        else:
            row_order = np.arange(len(rows))
        result = np.empty((2, len(rows)))
        result[:, row_order] = self._train_rows(table, rows[row_order], split, order[row_order]).cpu().double().numpy()
        return result[0], result[1]

    def _grown(self, table: SeedTable, rows: Ints) -> Grown:
        return Grown(self.host, self.statistics, self._seeds, table, self.envs[rows], rows)

    def _forward_blueprints(self, table: SeedTable, rows: Ints) -> Ints:
        """Return [n, S], the blueprint of each seed in the forward pass of bank rows `rows`; -1 where there is none."""
        envs = self.envs[rows]
        return np.where(np.isin(table.stage[envs], _IN_FORWARD), table.blueprint[envs], -1)

    def _train_rows(self, table: SeedTable, rows: Ints, split: DeviceSplit, order: Ints) -> Tensor:
        """Return mean loss and accuracy [2, n] of `train_epoch`, without synchronising with the device."""
        index = self._index(rows)
        slots = {}
        for slot, level in enumerate(self._levels):
            seeds = self._slot_seeds(table, slot, rows, np.ones(len(rows), dtype=bool))
            unused_parameters = self._gate_size(slot) if seeds.blend.ungated is None else 0  # parameters of gates
            loans = [group.stack.borrow(group.members, group.trained, unused_parameters) for group in seeds.groups]
            slots[level] = seeds, loans
        host = self.host.borrow(index, None)
        statistics = [BatchStatistics(s.mean[index], s.var[index]) for s in self.statistics]
        scaling = self._scaling(index, host, slots)
        losses = self._sgd(Epoch(split, self._index(order), host, statistics, slots, scaling))
        self.host.give_back(index, host)
        if self.loss_scales is not None and scaling is not None:
            self.loss_scales.give_back(index, scaling.scales)
        for own_statistics, trained_statistics in zip(self.statistics, statistics, strict=True):
            put_rows(
                index, [(own_statistics.mean, trained_statistics.mean), (own_statistics.var, trained_statistics.var)]
            )
        for seeds, loans in slots.values():
            for group, loan in zip(seeds.groups, loans, strict=True):
                group.stack.give_back(group.members, loan)
        return losses

    def _scaling(
        self, rows: Tensor, host: Borrowed, slots: dict[int, tuple[SlotSeeds, list[Borrowed]]]
    ) -> Scaling | None:
        """Return the scaling of an epoch of bank rows `rows` [n]; None unless hosts are trained in float16."""
        if self.loss_scales is None:
            return None
        count = len(rows)
        loans = [host]
        env_places = [Places.of(torch.arange(count, device=self._device), count)]
        for seeds, loans_of_slot in slots.values():
            loans += loans_of_slot
            env_places += seeds.places_of_groups(count)
        return Scaling(self.loss_scales.borrow(rows), loans, env_places)

    def _sgd(self, epoch: Epoch) -> Tensor:
        """Train all minibatches; return mean loss and accuracy in percent, [2, n], computed once at the end."""
        rule = self._rule
        order = epoch.order
        hosts = Optimiser([epoch.host], SGD(rule.host_lr, rule.momentum, rule.weight_decay, rule.max_grad_norm))
        loans = list[Borrowed]()
        for _, loans_of_slot in epoch.slots.values():
            loans += loans_of_slot
        seeds = Optimiser(loans, SGD(rule.seed_lr, rule.momentum, 0.0, rule.max_grad_norm))
        images = epoch.split.images(self._computed)
        labels = epoch.split.y[order]  # [n, N]
        results: list[tuple[Tensor, Tensor]] = []
        for begin in range(0, order.shape[1], rule.batch_size):
            batch = order[:, begin : begin + rule.batch_size]  # [n, B]
            targets = labels[:, begin : begin + rule.batch_size]  # [n, B]
            with torch.enable_grad():
                host = epoch.host.params()
                parameters = {
                    level: Slot(loans_of_slot, [loan.params() for loan in lent_loans])
                    for level, (loans_of_slot, lent_loans) in epoch.slots.items()
                }
                logits = network.logits(
                    side_by_side(images, batch),
                    self._spec,
                    [host] * (self._spec.levels + 1),
                    epoch.statistics,
                    parameters,
                    training=True,
                )
                loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
                loss = loss.view(targets.shape)
                share = 1.0 / targets.shape[1]
                weight = share if epoch.scaling is None else epoch.scaling.scales.scale * share
                # A scalar, because for a tensor's gradient torch imports part of its compiler, which takes a second.
                total = (loss * weight).sum()
            grads = torch.autograd.grad(total, [loan.flat for loan in (epoch.host, *loans)])
            if epoch.scaling is None:
                hosts.step(grads[:1])
                seeds.step(grads[1:])
            else:
                finite_rows = epoch.scaling.unscale(grads)
                hosts.step(grads[:1], finite_rows[:1])
                seeds.step(grads[1:], finite_rows[1:])
            results.append((loss.detach(), logits.detach()))
        losses, all_logits = (torch.cat(parts, 1) for parts in zip(*results, strict=True))  # [n, N], [n, N, classes]
        correct_mask = (all_logits.argmax(2) == labels).to(self._dtype)
        return torch.stack([losses.mean(1), 100.0 * correct_mask.mean(1)])

    # --- measuring --------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def measure(self, table: SeedTable, rows: Ints, split: DeviceSplit, *, ablate: bool) -> PassResult:
        """Return the evaluation of bank rows `rows` [n] on `split`, with all ablations if `ablate`.

        Changes no parameter. Synchronises with the device once, at the end.
        """
        self.settle()
        envs = self.envs[rows]
        acting_mask = np.isin(table.stage[envs], _IN_FORWARD[1:]) & (table.alpha[envs] > 0.0)  # [n, S]
        plan = plan_pass(acting_mask, ablate)
        if self._native is not None:
            correct_counts, losses = self._native.measure(self._grown(table, rows), acting_mask, plan, split)
        else:
            correct_counts, losses = self._measured(table, rows, acting_mask, plan, split)
        samples = len(split.y)
        percent = 100.0 * correct_counts / samples
        return PassResult(
            plan=plan,
            active=acting_mask,
            accuracy=percent,
            real_accuracy=percent[plan.real_rows()],
            loss=losses / samples,
        )

    def _measured(
        self, table: SeedTable, rows: Ints, acting_mask: Bools, plan: Pass, split: DeviceSplit
    ) -> tuple[Ints, Floats]:
        """Return each plan row's number of correct answers, and the real networks' losses [n] summed over samples."""
        hosts, moments, slots = self._measured_parts(table, rows, acting_mask, plan)
        real_rows = self._index(plan.real_rows())
        correct_counts = torch.zeros(len(plan.keys), device=self._device, dtype=torch.int64)
        loss = torch.zeros(len(rows), device=self._device, dtype=self._dtype)
        images = split.images(self._dtype)
        batch_size = self._samples_at_once(split, [len(level.mean) for level in moments])
        for x, y in zip(torch.split(images, batch_size), torch.split(split.y, batch_size), strict=True):
            logits = network.logits(x[:, :, :, None], self._spec, hosts, moments, slots, training=False)
            correct_counts += (logits.argmax(2) == y).sum(1)
            own_logits = logits.index_select(0, real_rows).flatten(0, 1)  # of the real networks
            loss += F.cross_entropy(own_logits, y.repeat(len(rows)), reduction="none").view(len(rows), -1).sum(1)
        results = torch.cat([correct_counts.double(), loss.double()]).cpu().numpy()
        return results[: len(correct_counts)].astype(np.int64), results[len(correct_counts) :]

    def _samples_at_once(self, split: DeviceSplit, hosts: list[int]) -> int:
        """Return how many samples fit one forward pass; `hosts`: number per level. Depends only on shapes and device.

        The widest tensor is an image unfolded for a convolution, or the convolution's output. In the first level all
        hosts share the unfolded image.
        """
        _, in_channels, height, width = split.x.shape
        widest_layer = self._spec.kernel**2 * in_channels * height * width
        for level, count in enumerate(hosts):
            halvings = min(level, self._spec.pools)
            pixels = (height >> halvings) * (width >> halvings)
            out_channels = channels(self._spec, level)
            unfolded_size = self._spec.kernel**2 * in_channels if level else 0
            widest_layer = max(widest_layer, count * pixels * max(unfolded_size, out_channels))
            in_channels = out_channels
        return max(1, _device.room(self._device) // (widest_layer * split.x.element_size()))

    def _measured_parts(
        self, table: SeedTable, rows: Ints, acting_mask: Bools, plan: Pass
    ) -> tuple[list[Params], list[BatchStatistics], dict[int, Slot]]:
        """Return host parameters (per level and for the head), moments per level, and the seeds behind each slot.

        Each level has the parameters of the rows that reach it.
        """
        hosts: list[Params] = []
        moments: list[BatchStatistics] = []
        slots: dict[int, Slot] = {}
        parent_rows = np.arange(len(rows), dtype=np.int64)  # position in `rows` of each activation row
        for level, running_statistics in enumerate(self.statistics):
            index = self._index(rows[parent_rows])
            hosts.append(self.host.read(index))
            moments.append(BatchStatistics(running_statistics.mean[index], running_statistics.var[index]))
            if level in self._levels:
                slot = self._levels.index(level)
                widening = plan.slots[slot]
                parent_rows = widening.env
                seeds = self._slot_seeds(table, slot, rows[parent_rows], widening.on & acting_mask[parent_rows, slot])
                params = [group.stack.read(group.members) for group in seeds.groups]
                parents = self._index(widening.parent) if widening.widens else None
                slots[level] = Slot(seeds, params, parents)
        hosts.append(self.host.read(self._index(rows[parent_rows])))
        return hosts, moments, slots
