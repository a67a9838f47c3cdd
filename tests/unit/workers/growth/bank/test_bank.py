"""The bank: environments side by side behave as if alone, and what is not trained does not change."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.tensor_world import device_data, env_path, make_bank, make_env, orders, plant

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import ControllerSettings
from workers.controllers.random import make as make_random
from workers.environments import Controller, Seen, Stopwatch, paths_below
from workers.growth.bank.bank import Bank
from workers.growth.environment import GrowthEnv
from workers.growth.rules.seeds import SeedTable
from workers.growth.samples import DeviceSplit
from workers.run.episode import play
from workers.tasks.synthetic import TASK
from workers.vocabulary import Algorithm, Stage

SAMPLES = TASK.sizes[0]
BLUEPRINTS = 7


def crowded(n_envs: int, dtype: torch.dtype = torch.float64, first_env: int = 0) -> tuple[Bank, SeedTable]:
    """Environments with all kinds of seeds in both slots, the same for the same environment in any bank."""
    bank, table = make_bank(n_envs, dtype, first_env)
    for row in range(n_envs):
        env = first_env + row
        for slot in range(2):
            kind = (3 * env + 5 * slot) % (BLUEPRINTS + 1)
            if kind < BLUEPRINTS:
                bank.germinate(row, slot, kind, env_path(env) / "slot" / slot)
                table.blueprint[row, slot] = kind
                table.algorithm[row, slot] = (env + slot) % 3
                table.stage[row, slot] = (Stage.TRAINING, Stage.BLENDING, Stage.FOSSILIZED)[(env + slot) % 3]
                table.alpha[row, slot] = (0.0, 0.5, 1.0)[(env + slot) % 3]
    return bank, table


def weights(bank: Bank, row: int) -> list[torch.Tensor]:
    stacks = [bank.host.values[row], bank.host.momentum[row]]
    return [*stacks, *(moments.mean[row] for moments in bank.statistics), *(m.var[row] for m in bank.statistics)]


def random_decider(env: GrowthEnv) -> Controller[Seen]:
    return make_random(ControllerSettings(), env.spec.slots, env.spec.growth.blueprints)


def test_row_of_a_bank_is_the_bank_of_one_in_float64_for_an_episode() -> None:
    """Random growth over a whole episode: the same decisions, stages and accuracies, environment by environment."""
    steps, n_envs = 12, 5
    many = make_env(n_envs, steps)
    together = play(many, paths_below(RngPath(3), n_envs), random_decider(many), {}, Stopwatch(), lambda _: None)
    assert many.lifecycle.germinated.sum() > n_envs
    for env in range(n_envs):
        one = make_env(1, steps)
        alone = play(one, [RngPath(3) / "env" / env], random_decider(one), {}, Stopwatch(), lambda _: None)
        assert np.array_equal(one.lifecycle.table.stage[0], many.lifecycle.table.stage[env])
        mine, theirs = together.envs[env], alone.envs[0]
        assert theirs.outcome == pytest.approx(mine.outcome, abs=1e-9)
        assert theirs.measures == pytest.approx(mine.measures, rel=1e-9)


def test_twenty_steps_leave_what_is_not_trained_bit_equal() -> None:
    bank, table = crowded(4)
    plant(bank, table, 0, 0, 5, alpha=0.5)
    table.frozen[0, 0] = True  # blending out: in the forward pass, not trained
    table.stage[1, 0], table.blueprint[1, 0] = Stage.GERMINATED, 5  # not in the forward pass at all
    bank.germinate(1, 0, 5, env_path(1) / "later")
    bank.settle()
    live = np.array([0, 1])
    before = copy.deepcopy(bank)
    for _ in range(5):  # five epochs of four batches
        bank.train_epoch(table, live, device_data(torch.float64).train, orders(2, SAMPLES))
    seeds, old = bank._seeds[0, 5], before._seeds[0, 5]
    for row in (0, 1):
        assert torch.equal(seeds.values[row], old.values[row])
        assert torch.equal(seeds.momentum[row], old.momentum[row])
    for row in (2, 3):  # environments that were not part of it
        assert all(torch.equal(a, b) for a, b in zip(weights(bank, row), weights(before, row), strict=True))
        for key, stack in bank._seeds.items():
            assert torch.equal(stack.values[row], before._seeds[key].values[row])
    assert not torch.equal(bank.host.values[0], before.host.values[0])


def test_every_ablation_is_what_a_bank_without_that_seed_would_show() -> None:
    bank, table = make_bank(3)
    for env, slot, blueprint, alpha, algorithm in (
        (0, 0, 5, 0.7, Algorithm.ADD), (0, 1, 2, 1.0, Algorithm.MULTIPLY),
        (1, 1, 4, 0.3, Algorithm.GATE), (2, 0, 6, 1.0, Algorithm.ADD),
    ):  # fmt: skip
        plant(bank, table, env, slot, blueprint, alpha=alpha, algorithm=algorithm)
    data = device_data(torch.float64)
    bank.train_epoch(table, np.arange(3), data.train, orders(3, SAMPLES))
    fused = bank.measure(table, np.arange(3), data.validation, ablate=True)
    for key, accuracy in zip(fused.plan.keys.tolist(), fused.accuracy.tolist(), strict=True):
        env, code = key >> 2, key & 3
        cut = copy.deepcopy(table)
        cut.alpha[env] = [alpha if code >> slot & 1 else 0.0 for slot, alpha in enumerate(table.alpha[env])]
        alone = bank.measure(cut, np.array([env]), data.validation, ablate=False)
        assert alone.accuracy[0] == accuracy


def test_an_exact_identity_contributes_exactly_nothing() -> None:
    bank, table = make_bank(1, torch.float32)
    plant(bank, table, 0, 0, 0, alpha=1.0)  # norm: tanh(0) at birth
    result = bank.measure(table, np.array([0]), device_data().validation, ablate=True)
    assert len(set(result.accuracy.tolist())) == 1


def test_measuring_mutates_nothing_and_evaluates_in_evaluation_mode() -> None:
    bank, table = crowded(2)
    data = device_data(torch.float64)
    before = copy.deepcopy([weights(bank, row) for row in range(2)])
    first = bank.measure(table, np.arange(2), data.validation, ablate=True)
    again = bank.measure(table, np.arange(2), data.validation, ablate=True)
    assert np.array_equal(first.accuracy, again.accuracy)
    after = [weights(bank, row) for row in range(2)]
    assert all(torch.equal(a, b) for x, y in zip(before, after, strict=True) for a, b in zip(x, y, strict=True))
    # Evaluation mode: a sample's logits do not depend on its companions, so the loss of halves averages to the whole.
    half = len(data.validation.y) // 2
    halves = [
        DeviceSplit(data.validation.x[cut], data.validation.y[cut]) for cut in (slice(0, half), slice(half, None))
    ]
    parts = [bank.measure(table, np.arange(2), part, ablate=False) for part in halves]
    assert (parts[0].loss + parts[1].loss) / 2 == pytest.approx(first.loss, rel=1e-9)


def test_losses_are_per_sample_means_of_the_real_network() -> None:
    """A plain host written out in torch, in evaluation mode, gives the same loss and accuracy."""
    bank, table = make_bank(1)
    data = device_data(torch.float64)
    bank.train_epoch(table, np.array([0]), data.train, orders(1, SAMPLES))
    p = {name: value[0] for name, value in bank.host.read(torch.tensor([0])).items()}
    h = data.validation.x
    for level, moments in enumerate(bank.statistics):
        h = F.conv2d(h, p[f"{level}.conv"])
        h = F.batch_norm(h, moments.mean[0], moments.var[0], p[f"{level}.bn.gain"], p[f"{level}.bn.bias"])
        h = F.max_pool2d(F.relu(h), 2)
    logits = h.mean((2, 3)) @ p["head.weight"] + p["head.bias"]
    result = bank.measure(table, np.array([0]), data.validation, ablate=True)
    assert result.loss[0] == pytest.approx(float(F.cross_entropy(logits, data.validation.y)), rel=1e-9)
    assert result.real_accuracy[0] == pytest.approx(
        100.0 * float((logits.argmax(1) == data.validation.y).double().mean())
    )


def test_a_dropped_seed_leaves_nothing_for_the_next() -> None:
    bank, table = make_bank(1)
    plant(bank, table, 0, 0, 5, alpha=1.0)
    bank.train_epoch(table, np.array([0]), device_data(torch.float64).train, orders(1, SAMPLES))
    assert bank._seeds[0, 5].momentum[0].abs().sum() > 0
    bank.drop(0, 0, 5)
    assert bank._seeds[0, 5].values[0].abs().sum() == 0
    bank.germinate(0, 0, 5, env_path(0) / "second")
    bank.settle()
    assert bank._seeds[0, 5].values[0].abs().sum() > 0
    assert bank._seeds[0, 5].momentum[0].abs().sum() == 0


def test_a_new_gate_leaves_the_module_as_it_is() -> None:
    bank, table = make_bank(1)
    plant(bank, table, 0, 0, 5, alpha=0.5, algorithm=Algorithm.GATE)
    bank.train_epoch(table, np.array([0]), device_data(torch.float64).train, orders(1, SAMPLES))
    module, gate = bank.sizes(0, 5)
    before = bank._seeds[0, 5].values[0].clone()
    bank.open_gate(0, 0, 5, env_path(0) / "again")
    bank.settle()
    after = bank._seeds[0, 5].values[0]
    assert torch.equal(after[:module], before[:module])
    assert not torch.equal(after[module:], before[module:])
    assert bank._seeds[0, 5].momentum[0, module:].abs().sum() == 0
    assert len(after) == module + gate
