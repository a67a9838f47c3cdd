"""The bank: environments side by side behave as if alone, and untrained parameters do not change."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.kernels.kernel_cases import equal_to_the_bit
from support.worlds.tensor_world import ENVS, crowded, device_data, env_path, make_bank, make_env, orders, plant

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import ControllerSettings, HostKernel
from workers.environments import Controller, Seen, Stopwatch, paths_below
from workers.kinds.growth.controllers.random import make as make_random
from workers.kinds.growth.environment import GrowthEnv
from workers.kinds.growth.samples import DeviceSplit
from workers.kinds.growth.tasks.digits import TASK as DIGITS
from workers.kinds.growth.tasks.synthetic import TASK
from workers.kinds.growth.vocabulary import Algorithm, Stage
from workers.native import library
from workers.run.episode import play

SAMPLES = TASK.sizes[0]
CPU = torch.device("cpu")
ROWS = np.arange(ENVS)
KERNELS = ["torch", *[kernel.name for kernel in library.kernels() if not kernel.problem][:1]]


def random_decider(env: GrowthEnv) -> Controller[Seen]:
    return make_random(ControllerSettings(), env.spec.slots, env.spec.growth.blueprints)


def test_each_row_of_a_bank_behaves_like_a_bank_of_one() -> None:
    """Random growth over a whole episode: the same decisions, stages and accuracies, environment by environment."""
    steps = 12
    n_envs = 5
    large_env = make_env(n_envs, steps)
    all_results = play(
        large_env, paths_below(RngPath(3), n_envs), random_decider(large_env), {}, Stopwatch(), lambda _: None
    )
    assert large_env.lifecycle.germinated.sum() > n_envs
    for env in range(n_envs):
        single_env = make_env(1, steps)
        single_result = play(
            single_env, [RngPath(3) / "env" / env], random_decider(single_env), {}, Stopwatch(), lambda _: None
        )
        assert np.array_equal(single_env.lifecycle.table.stage[0], large_env.lifecycle.table.stage[env])
        batch_result = all_results.envs[env]
        alone_result = single_result.envs[0]
        assert alone_result.outcome == pytest.approx(batch_result.outcome, abs=1e-9)
        assert alone_result.measures == pytest.approx(batch_result.measures, rel=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_training_some_rows_does_not_change_other_rows(kernel: HostKernel) -> None:
    """Other environments, a seed that blends out, and one that has only germinated and is not in the forward pass."""
    (bank, table, split), (untrained_bank, *_) = (crowded(DIGITS, CPU, 53, kernel=kernel) for _ in range(2))
    table.stage[[2, 6], 0], table.alpha[6, 0] = (Stage.GERMINATED, Stage.BLENDING), 0.5
    assert table.frozen[6, 0]
    trained = np.array([2, 6])
    for _ in range(3):
        bank.train_epoch(table, trained, split, orders(2, 53))
    assert equal_to_the_bit(bank, untrained_bank, np.delete(ROWS, trained))
    for row in trained:
        seeds, untrained_seeds = (
            bank_of_both._seeds[0, int(table.blueprint[row, 0])] for bank_of_both in (bank, untrained_bank)
        )
        assert torch.equal(seeds.values[row], untrained_seeds.values[row])
        assert torch.equal(seeds.momentum[row], untrained_seeds.momentum[row])
        assert not torch.equal(bank.host.values[row], untrained_bank.host.values[row])


def test_every_ablation_equals_a_bank_without_the_seed_module() -> None:
    bank, table = make_bank(3)
    for env, slot, blueprint, alpha, algorithm in (
        (0, 0, 5, 0.7, Algorithm.ADD),
        (0, 1, 2, 1.0, Algorithm.MULTIPLY),
        (1, 1, 4, 0.3, Algorithm.GATE),
        (2, 0, 6, 1.0, Algorithm.ADD),
    ):
        plant(bank, table, env, slot, blueprint, alpha=alpha, algorithm=algorithm)
    data = device_data(torch.float64)
    bank.train_epoch(table, np.arange(3), data.train, orders(3, SAMPLES))
    ablated_pass = bank.measure(table, np.arange(3), data.validation, ablate=True)
    for key, accuracy in zip(ablated_pass.plan.keys.tolist(), ablated_pass.accuracy.tolist(), strict=True):
        env = key >> 2
        code = key & 3
        table_without_seeds = copy.deepcopy(table)
        table_without_seeds.alpha[env] = [
            alpha if code >> slot & 1 else 0.0 for slot, alpha in enumerate(table.alpha[env])
        ]
        separate_pass = bank.measure(table_without_seeds, np.array([env]), data.validation, ablate=False)
        assert separate_pass.accuracy[0] == accuracy


def test_an_identity_module_contributes_exactly_zero() -> None:
    bank, table = make_bank(1, torch.float32)
    plant(bank, table, 0, 0, 0, alpha=1.0)  # norm: tanh(0) at birth
    result = bank.measure(table, np.array([0]), device_data().validation, ablate=True)
    assert len(set(result.accuracy.tolist())) == 1


def test_measuring_a_bank_does_not_change_it() -> None:
    (bank, table, split), (unmeasured_bank, *_) = (crowded(TASK, CPU, 64, torch.float64) for _ in range(2))
    first_pass, second_pass = (bank.measure(table, ROWS, split, ablate=True) for _ in range(2))
    assert np.array_equal(first_pass.accuracy, second_pass.accuracy)
    assert equal_to_the_bit(bank, unmeasured_bank)
    # Evaluation mode: a sample's logits do not depend on its companions, so the loss of halves averages to the whole.
    halves = [DeviceSplit(split.x[rows], split.y[rows]) for rows in (slice(0, 32), slice(32, None))]
    loss_of_first_half, loss_of_second_half = (bank.measure(table, ROWS, part, ablate=False).loss for part in halves)
    assert (loss_of_first_half + loss_of_second_half) / 2 == pytest.approx(first_pass.loss, rel=1e-9)


def test_measured_losses_equal_those_of_a_plain_network() -> None:
    """A plain host written out in torch, in evaluation mode, gives the same loss and accuracy."""
    bank, table = make_bank(1)
    data = device_data(torch.float64)
    bank.train_epoch(table, np.array([0]), data.train, orders(1, SAMPLES))
    p = {name: value[0] for name, value in bank.host.read(torch.tensor([0])).items()}
    h = data.validation.x
    y = data.validation.y
    for level, moments in enumerate(bank.statistics):
        h = F.conv2d(h, p[f"{level}.conv"])
        h = F.batch_norm(h, moments.mean[0], moments.var[0], p[f"{level}.bn.gain"], p[f"{level}.bn.bias"])
        h = F.max_pool2d(F.relu(h), 2)
    logits = h.mean((2, 3)) @ p["head.weight"] + p["head.bias"]
    result = bank.measure(table, np.array([0]), data.validation, ablate=True)
    assert result.loss[0] == pytest.approx(float(F.cross_entropy(logits, y)), rel=1e-9)
    assert result.real_accuracy[0] == pytest.approx(100.0 * float((logits.argmax(1) == y).double().mean()))


def test_dropping_a_seed_module_clears_its_row() -> None:
    bank, table = make_bank(1)
    plant(bank, table, 0, 0, 5, alpha=0.5, algorithm=Algorithm.GATE)
    bank.train_epoch(table, np.array([0]), device_data(torch.float64).train, orders(1, SAMPLES))
    seeds = bank._seeds[0, 5]
    (module, gate) = bank.sizes(0, 5)
    values_before = seeds.values[0].clone()
    assert len(values_before) == module + gate
    assert seeds.momentum[0].abs().sum() > 0
    bank.open_gate(0, 0, 5, env_path(0) / "again")
    bank.settle()
    assert torch.equal(seeds.values[0, :module], values_before[:module])
    assert not torch.equal(seeds.values[0, module:], values_before[module:])
    assert seeds.momentum[0, module:].abs().sum() == 0
    bank.drop(0, 0, 5)
    assert seeds.values[0].abs().sum() == 0
    bank.germinate(0, 0, 5, env_path(0) / "second")
    bank.settle()
    assert seeds.values[0].abs().sum() > 0
    assert seeds.momentum[0].abs().sum() == 0


def test_training_in_half_precision_is_close_to_float32() -> None:
    """One step of every blueprint and style; parameters and momentum are float32, and validation is, to the bit."""
    losses = []
    momenta = []
    measurements = []
    for amp in ("bf16", "off"):
        bank, table, split = crowded(DIGITS, CPU, 64, amp=amp, batch_size=64)
        measurements.append(bank.measure(table, ROWS, split, ablate=True))
        losses.append(bank.train_epoch(table, ROWS, split, orders(ENVS, 64))[0])
        stacks = [bank.host, *bank._seeds.values()]
        assert all(s.values.dtype == s.momentum.dtype == torch.float32 for s in stacks)
        momenta.append(torch.cat([s.momentum.flatten().double() for s in stacks]))
    assert np.array_equal(measurements[0].loss, measurements[1].loss)
    assert np.array_equal(measurements[0].accuracy, measurements[1].accuracy)
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    assert 0.0 < float((momenta[0] - momenta[1]).norm() / momenta[1].norm()) < 0.25
