"""Host training in half precision: what is computed in it, what is not, and the loss scale of float16."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.tensor_world import device_data, make_bank, make_session, orders, plant, quiet

from workers.growth.bank import stack as stack_module
from workers.growth.bank.bank import COMPUTED_IN, Bank
from workers.growth.bank.stack import CLEAN_STEPS, LARGEST, LossScale
from workers.growth.rules.seeds import SeedTable
from workers.growth.samples import DeviceSplit
from workers.run.session import Session
from workers.storage import state_bytes
from workers.vocabulary import Algorithm

BATCH = 64
HEAD = slice(-8, None)  # biases and some weights of the synthetic task's linear layer


def bank_in(amp: str, n_envs: int, first_env: int = 0) -> tuple[Bank, SeedTable]:
    bank, table = make_bank(n_envs, torch.float32, first_env)
    bank._computed = COMPUTED_IN.get(amp, torch.float32)
    return bank, table


def one_batch() -> DeviceSplit:
    data = device_data(torch.float32)
    return DeviceSplit(data.train.x[:BATCH].contiguous(), data.train.y[:BATCH])


def step(bank: Bank, table: SeedTable, scale: LossScale | None, first_env: int = 0) -> tuple[np.ndarray, np.ndarray]:
    n = len(bank.envs)
    return bank.train_epoch(table, np.arange(n), one_batch(), orders(n, BATCH, first_env), scale)


def scaled_by(value: float) -> LossScale:
    scale = LossScale()
    scale.value = value
    return scale


def relative(mine: torch.Tensor, theirs: torch.Tensor) -> float:
    a, b = mine.detach().double(), theirs.detach().double()
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize(("amp", "tolerance"), [("bf16", 0.25), ("fp16", 0.1)])
def test_every_blueprint_and_style_trains_as_in_float32_nearly(amp: str, tolerance: float) -> None:
    """One step of 7 environments with two seeds each; parameters and momentum are float32 all the time."""
    found = {}
    for name in (amp, "off"):
        bank, table = bank_in(name, 7)
        for env in range(7):
            for slot in range(2):
                plant(bank, table, env, slot, (env + 3 * slot) % 7, alpha=0.5, algorithm=(env + slot) % len(Algorithm))
        loss, _ = step(bank, table, scaled_by(2.0**8) if name == "fp16" else None)
        stacks = [bank.host, *bank._seeds.values()]
        assert all(s.values.dtype == s.momentum.dtype == torch.float32 for s in stacks)
        found[name] = (loss, torch.cat([s.momentum.flatten() for s in stacks]))
    assert found[amp][0] == pytest.approx(found["off"][0], rel=0.01)
    assert 0.0 < relative(found[amp][1], found["off"][1]) < tolerance


def test_measurements_are_in_float32() -> None:
    """Validation of a bank that trains in bfloat16 is to the bit that of one that does not."""
    results = []
    for amp in ("bf16", "off"):
        bank, table = bank_in(amp, 2)
        plant(bank, table, 0, 0, 4, alpha=0.5)
        results.append(bank.measure(table, np.arange(2), one_batch(), ablate=True))
    assert np.array_equal(results[0].loss, results[1].loss)
    assert np.array_equal(results[0].accuracy, results[1].accuracy)


# --- the loss scale -------------------------------------------------------------------------------------------------


def test_an_environment_that_overflows_stays_and_halves_the_scale_and_the_others_step() -> None:
    scale = scaled_by(2.0**8)
    bank, table = bank_in("fp16", 3)
    bank.host.values[1, HEAD] *= 3e6  # logits are finite; their gradient times the scale is not, in float16
    before = bank.host.values.clone()
    loss, _ = step(bank, table, scale)
    scale.end_epoch()
    assert np.isfinite(loss).all()
    assert torch.equal(bank.host.values[1], before[1])
    assert not bank.host.momentum[1].any()
    assert scale.value == 2.0**7
    for env in (0, 2):
        alone, small = bank_in("fp16", 1, first_env=env)
        step(alone, small, scaled_by(2.0**8), first_env=env)
        assert relative(bank.host.momentum[env], alone.host.momentum[0]) < 1e-2
        assert not torch.equal(bank.host.values[env], before[env])


def test_a_diverged_environment_has_no_say_and_changes_nothing_for_the_others() -> None:
    scale = LossScale()
    bank, table = bank_in("fp16", 2)
    bank.host.values[0, 0] = float("nan")
    loss, _ = step(bank, table, scale)
    scale.end_epoch()
    assert np.isnan(loss[0])
    assert np.isfinite(loss[1])
    assert scale.value == LARGEST
    assert torch.isfinite(bank.host.values[1]).all()


def test_at_scale_1_a_gradient_is_taken_as_it_is() -> None:
    """What is not finite without a scale is a divergence; the scale cannot fall any further for anybody's sake."""
    scale = scaled_by(1.0)
    bank, table = bank_in("fp16", 2)
    bank.host.values[0, HEAD] *= 3e9
    step(bank, table, scale)
    scale.end_epoch()
    assert not torch.isfinite(bank.host.values[0]).all()
    assert torch.isfinite(bank.host.values[1]).all()
    assert scale.value == 1.0


def test_the_scale_of_a_run_is_the_smallest_of_its_parts_whatever_their_order() -> None:
    for ends in ([2.0**16, 2.0**13, 2.0**15], [2.0**13, 2.0**16, 2.0**15]):
        scale = LossScale()
        for value in ends:
            scale.part_ended(value, 10)
        scale.end_epoch()
        assert (scale.value, scale.clean_steps) == (2.0**13, 0)


def test_clean_steps_bring_the_scale_back() -> None:
    scale = scaled_by(LARGEST / 2)
    for _ in range(CLEAN_STEPS // 8):
        assert scale.value == LARGEST / 2
        scale.part_ended(scale.value, 8)
        scale.part_ended(scale.value, 8)  # of another device, at the same time
        scale.end_epoch()
    assert (scale.value, scale.clean_steps) == (LARGEST, 0)


@pytest.mark.parametrize("state", [{"value": 0.5, "clean_steps": 0}, {"value": 2.0, "clean_steps": -1},
                                   {"value": float("nan"), "clean_steps": 0}])  # fmt: skip
def test_a_foreign_scale_is_refused(state: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="loss scale"):
        LossScale().resume(state)


@pytest.mark.parametrize("controller", ["ppo", "random"])
def test_a_run_in_float16_goes_on_from_its_checkpoint_as_if_it_had_not_stopped(
    controller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_module, "LARGEST", 2.0**30)  # so that it does move

    def fresh() -> Session:
        session = make_session(growth={"amp": "fp16"}, controller=controller, steps=6)
        assert session._env.loss_scale is not None
        return session

    whole = fresh()
    records = [whole.train(episode, quiet, quiet) for episode in range(2)]
    stopped = fresh()
    stopped.train(0, quiet, quiet)
    state = stopped.state()
    assert state is not None
    assert state["loss_scale"] != LossScale().state()
    again = fresh()
    again.resume(state_bytes.from_bytes(state_bytes.to_bytes(state)))
    assert again.train(1, quiet, quiet).digest == records[1].digest
    assert again.state()["loss_scale"] == whole.state()["loss_scale"]
