"""float16 has a loss scale per environment, as GradScaler's; an overflow affects only its environment."""

import numpy as np
import pytest
import torch
from support.worlds.tensor_world import BATCH, ENVS, crowded, env_path, make_env, make_session, orders, quiet

from workers.kinds.growth.bank.bank import Bank
from workers.kinds.growth.bank.loss_scale import INITIAL_SCALE, LEAST_SCALE, LossScales, Scaling
from workers.kinds.growth.bank.stack import Borrowed, Places
from workers.kinds.growth.tasks.digits import TASK as DIGITS
from workers.storage import state_bytes

CPU = torch.device("cpu")
HUGE = 2.0**60  # no gradient fits float16 when multiplied by this
SMALL = 2.0**6  # every gradient of a fresh host does


def scales_of(*values: float) -> LossScales:
    scales = LossScales.fresh(len(values), torch.zeros(()))
    scales.scale[:, 0] = torch.tensor(values)
    return scales


def test_the_loss_scale_of_every_environment_equals_that_of_a_grad_scaler() -> None:
    """Through overflows, and through growth after 2000 steps without one."""
    overflows = {0: {5}, 1: {0, 1, 700, 2600}, 2: set()}  # environment -> steps
    loss_scales = LossScales.fresh(len(overflows), torch.zeros(()))
    parameters = [torch.zeros(1, requires_grad=True) for _ in overflows]
    optimisers = [torch.optim.SGD([parameter_of_one], lr=1.0) for parameter_of_one in parameters]
    grad_scalers = [torch.amp.GradScaler("cpu") for _ in overflows]
    for step in range(4200):
        overflow_flags = [step in steps for steps in overflows.values()]
        loss_scales.update(torch.tensor(overflow_flags)[:, None])
        for parameter, optimiser, scaler, is_infinite in zip(
            parameters, optimisers, grad_scalers, overflow_flags, strict=True
        ):
            scaler.scale(torch.zeros(()))  # creates its scale
            parameter.grad = torch.tensor([float("inf") if is_infinite else 0.0])
            scaler.step(optimiser)
            scaler.update()
        assert loss_scales.scale[:, 0].tolist() == [scaler.get_scale() for scaler in grad_scalers]
    assert loss_scales.scale[2, 0] == 4 * INITIAL_SCALE
    assert loss_scales.scale[0, 0] == 2 * INITIAL_SCALE


def parts_of(bank: Bank, env: int) -> list[torch.Tensor]:
    """Parameters and momentum of an environment's host and of its seeds."""
    stacks = [bank.host, *bank._seeds.values()]
    return [part.clone() for stack in stacks for part in (stack.values[env], stack.momentum[env])]


def equal(parts: list[torch.Tensor], other_parts: list[torch.Tensor]) -> bool:
    return all(torch.equal(part, other_part) for part, other_part in zip(parts, other_parts, strict=True))


def trained(scales: dict[int, float], steps: int = 1) -> tuple[Bank, list[list[torch.Tensor]]]:
    """A bank after an epoch of some steps that began with these scales, else SMALL; and its parts before, by env."""
    bank, table, split = crowded(DIGITS, CPU, steps * BATCH, amp="fp16")
    assert bank.loss_scales is not None
    bank.loss_scales.scale.fill_(SMALL)
    for env, scale in scales.items():
        bank.loss_scales.scale[env] = scale
    parts_before = [parts_of(bank, env) for env in range(ENVS)]
    bank.train_epoch(table, np.arange(ENVS), split, orders(ENVS, steps * BATCH))
    return bank, parts_before


@pytest.mark.parametrize(
    "overflow_steps", [(0,), (6,), (ENVS - 1,), (1, 4, 10)]
)  # 6 has a frozen seed, the last has none
def test_an_overflow_skips_only_the_step_of_its_environment(
    overflow_steps: tuple[int, ...],
) -> None:
    """Its host and seeds keep parameters and momentum, and its scale alone is halved."""
    clean_bank, _ = trained({})
    bank, parts_before = trained(dict.fromkeys(overflow_steps, HUGE))
    assert bank.loss_scales is not None
    for env in range(ENVS):
        overflowed = env in overflow_steps
        assert equal(parts_of(bank, env), parts_before[env]) == overflowed
        assert equal(parts_of(bank, env), parts_of(clean_bank, env)) != overflowed
        assert bank.loss_scales.scale[env, 0] == (HUGE / 2 if overflowed else SMALL)
        assert bank.loss_scales.finite_steps[env, 0] == (0 if overflowed else 1)


def test_an_environment_trains_again_when_its_scale_is_small_enough() -> None:
    bank, parts_before = trained({3: INITIAL_SCALE * 2**4}, steps=12)
    assert bank.loss_scales is not None
    assert bank.loss_scales.scale[3, 0] < INITIAL_SCALE * 2**4
    assert bank.loss_scales.finite_steps[3, 0] > 0
    assert not equal(parts_of(bank, 3), parts_before[3])


def test_an_epoch_changes_only_the_loss_scales_of_trained_rows() -> None:
    bank, _ = trained({})
    assert bank.loss_scales is not None
    bank.loss_scales.scale[[3, 8]] = HUGE
    _, table, split = crowded(DIGITS, CPU, BATCH, amp="fp16")
    for _ in range(2):
        bank.train_epoch(table, np.array([3, 5]), split, orders(2, BATCH))
    assert bank.loss_scales.scale[[3, 5, 8], 0].tolist() == [HUGE / 4, SMALL, HUGE]
    assert bank.loss_scales.finite_steps[[3, 5, 8], 0].tolist() == [0, 3, 1]


def test_training_in_float16_is_close_to_float32() -> None:
    """One step of every blueprint and style. Parameters and momentum are float32; a measurement is, to the bit."""
    losses = []
    momenta = []
    measurements = []
    for amp in ("fp16", "off"):
        bank, table, split = crowded(DIGITS, CPU, 64, amp=amp, batch_size=64)
        if bank.loss_scales is not None:
            bank.loss_scales.scale.fill_(SMALL)
        measurements.append(bank.measure(table, np.arange(ENVS), split, ablate=True))
        losses.append(bank.train_epoch(table, np.arange(ENVS), split, orders(ENVS, 64))[0])
        stacks = [bank.host, *bank._seeds.values()]
        assert all(stack.values.dtype == stack.momentum.dtype == torch.float32 for stack in stacks)
        momenta.append(torch.cat([stack.momentum.flatten().double() for stack in stacks]))
    assert np.array_equal(measurements[0].loss, measurements[1].loss)
    assert np.array_equal(measurements[0].accuracy, measurements[1].accuracy)
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    assert 0.0 < float((momenta[0] - momenta[1]).norm() / momenta[1].norm()) < 0.1


def two_loans() -> tuple[list[Borrowed], list[Places]]:
    """Hosts of three environments; seeds of environments 2 and 0, of which that of 2 is frozen."""
    hosts = Borrowed((), torch.zeros(3, 4), torch.zeros(3, 4), None)
    seeds = Borrowed((), torch.zeros(2, 5), torch.zeros(2, 5), torch.tensor([[False], [True]]))
    return [hosts, seeds], [Places.of(torch.arange(3), 3), Places.of(torch.tensor([2, 0]), 3)]


@pytest.mark.parametrize("bad_number", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize(
    ("loan", "row", "skipped_envs"),
    [(0, 1, {1}), (1, 1, {0}), (1, 0, set())],
    ids=["a host's", "a seed's", "a frozen seed's"],
)
def test_one_non_finite_number_in_a_gradient_skips_the_step(
    loan: int, row: int, skipped_envs: set[int], bad_number: float
) -> None:
    loans, env_places = two_loans()
    scaling = Scaling(scales_of(8.0, 4.0, 2.0), loans, env_places)
    grads = [torch.ones(3, 4), torch.ones(2, 5)]
    grads[loan][row, 2] = bad_number
    hosts, seeds = scaling.unscale(grads)
    assert hosts[:, 0].tolist() == [env not in skipped_envs for env in range(3)]
    assert seeds[:, 0].tolist() == [env not in skipped_envs for env in (2, 0)]
    expected = [scale / 2 if env in skipped_envs else scale for env, scale in enumerate((8.0, 4.0, 2.0))]
    assert scaling.scales.scale[:, 0].tolist() == expected


def test_gradients_are_divided_by_the_scale_of_their_environment() -> None:
    loans, env_places = two_loans()
    grads = [torch.ones(3, 4), torch.ones(2, 5)]
    Scaling(scales_of(8.0, 4.0, 2.0), loans, env_places).unscale(grads)
    assert grads[0][:, 0].tolist() == [1 / 8, 1 / 4, 1 / 2]
    assert grads[1][:, 0].tolist() == [1 / 2, 1 / 8]


def test_a_non_finite_step_at_the_smallest_scale_is_applied() -> None:
    loans, env_places = two_loans()
    scaling = Scaling(scales_of(LEAST_SCALE, 2.0, 2.0), loans, env_places)
    hosts, _ = scaling.unscale([torch.full((3, 4), float("nan")), torch.ones(2, 5)])
    assert hosts[:, 0].tolist() == [True, False, False]
    assert scaling.scales.scale[:, 0].tolist() == [LEAST_SCALE, LEAST_SCALE, LEAST_SCALE]


def test_overflowing_activations_end_only_the_episode_of_one_host() -> None:
    env = make_env(3, 4, torch.float32, amp="fp16")
    env.begin([env_path(i) for i in range(3)])
    bank, row = env.homes[1]
    bank.host.values[row] *= 1e6  # beyond float16's largest number, 65504
    view = env.advance()
    assert view.alive.tolist() == [True, False, True]
    assert env.diverged.tolist() == [False, True, False]


def test_a_new_episode_begins_with_new_scales() -> None:
    bank, _ = trained({2: HUGE})
    bank.begin_episode([env_path(env) for env in range(ENVS)])
    assert bank.loss_scales is not None
    assert (bank.loss_scales.scale == INITIAL_SCALE).all()
    assert (bank.loss_scales.finite_steps == 0).all()


def test_a_run_in_float16_resumes_bit_identically() -> None:
    """From a checkpoint that went through bytes; scales begin anew with the hosts of an episode."""
    whole, first_session, resumed_session = (make_session(growth={"batch_size": 64, "amp": "fp16"}) for _ in range(3))
    expected = [whole.train(episode, quiet, quiet).digest for episode in (0, 1)]
    first_digest = first_session.train(0, quiet, quiet).digest
    resumed_session.resume(state_bytes.from_bytes(state_bytes.to_bytes(first_session.state())))
    assert [first_digest, resumed_session.train(1, quiet, quiet).digest] == expected
