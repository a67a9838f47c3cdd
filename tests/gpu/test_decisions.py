"""Synchronisations and copies per decision on one GPU; no run uses another GPU."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.plans.worker_orders import run_order
from support.worlds.growth_world import random_decisions
from support.worlds.tensor_world import device_data, env_path, make_bank, quiet

from esper_ab.contracts.machine import Questions
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic, GroupSettings, GrowthSettings, RewardSettings
from workers.environments import Stopwatch, paths_below
from workers.kinds.growth.bank.bank import Bank
from workers.kinds.growth.environment import EnvSpec, GrowthEnv
from workers.kinds.growth.kind import GrowthWorld
from workers.kinds.growth.preflight import step_s
from workers.kinds.growth.samples import DeviceData
from workers.kinds.growth.tasks.synthetic import TASK
from workers.kinds.growth.vocabulary import HEADS, Op
from workers.run.session import Session
from workers.storage import state_bytes

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),
    pytest.mark.gpus(2),
    pytest.mark.usefixtures("deterministic"),
]
ENVS = 16
STEPS = 10
OWN_GPU = torch.device("cuda:1")
OTHER_GPU = 0
BF16 = pytest.param("bf16", marks=pytest.mark.bf16)
Counted = Callable[..., int]


def data_on(device: torch.device) -> DeviceData:
    return DeviceData.of(TASK.load(""), device)


def environments(amp: str = "off") -> GrowthEnv:
    spec = EnvSpec(
        task=TASK,
        slots=TASK.slots,
        steps=STEPS,
        env_devices=("cuda:1",) * ENVS,
        reward=RewardSettings(),
        growth=GrowthSettings(batch_size=256, amp=amp),  # type: ignore[arg-type]
    )
    return GrowthEnv(spec, {"cuda:1": data_on(OWN_GPU)}, Stopwatch())


@pytest.mark.parametrize("amp", ["off", BF16, "fp16"])
def test_a_decision_synchronises_twice_for_any_number_of_environments(counted: Counted, amp: str) -> None:
    """Once for the losses of the epoch and once for those of the validation."""
    env = environments(amp)
    rng = np.random.default_rng(0)
    view = env.begin(paths_below(RngPath(0), ENVS))
    births = 0
    for _ in range(STEPS - 1):
        decisions = random_decisions(view.masks, rng)
        counts_before = (counted("waits"), counted("downloads"))
        births += int((decisions[:, HEADS.index("op")] == Op.GERMINATE).sum())
        view = env.step(decisions)[1]
        wait_count = counted("waits") - counts_before[0]
        downloads = counted("downloads") - counts_before[1]
        assert (wait_count, downloads) == (2, 2)
    assert births > ENVS
    assert len(set(env.lifecycle.table.blueprint.flatten().tolist())) > 3


def test_all_new_seed_modules_of_a_decision_are_uploaded_at_once(counted: Counted) -> None:
    bank = Bank(TASK, TASK.slots, np.arange(ENVS), GrowthSettings(), data_on(OWN_GPU).train.x)
    bank.begin_episode([env_path(row) for row in range(ENVS)])
    separate_bank, _ = make_bank(ENVS, torch.float32)
    for row in range(ENVS):
        for bank_of_run in (bank, separate_bank):
            bank_of_run.germinate(row, row % 2, row % 7, env_path(row))
            if row % 3 == 0:
                bank_of_run.open_gate(row, row % 2, row % 7, env_path(row) / "gate")
    counts_before = counted("uploads"), counted("waits")
    bank.settle()
    assert (counted("uploads"), counted("waits")) == (counts_before[0] + 1, counts_before[1])
    separate_bank.settle()
    for key, stack in bank._seeds.items():
        assert torch.equal(stack.values.cpu(), separate_bank._seeds[key].values)


def test_the_preflight_timer_waits_for_the_gpu(counted: Counted) -> None:
    questions = Questions(task="synthetic", data_dir="", user_rewards=(), hosts=2, batch_size=8)
    downloads, wait_count, uploads = (counted(counter) for counter in ("downloads", "waits", "uploads"))
    assert step_s(questions, OWN_GPU) > 0.0
    epochs = counted("downloads") - downloads
    upload_count = 2  # uploads of images and labels
    assert (epochs, counted("waits") - wait_count) == (
        2,
        2 + upload_count + 2,
    )  # `seconds` waits before and after the second
    assert counted("uploads") > uploads + upload_count


def new_session(device: torch.device, amp: str) -> Session:
    settings = GroupSettings(growth=GrowthSettings(batch_size=128, amp=amp))  # type: ignore[arg-type]
    order = run_order(
        settings,
        task="synthetic",
        slots=TASK.slots,
        n_envs=2,
        steps=4,
        env_devices=("cuda:0",) * 2,
        arithmetic=Arithmetic(kernel="torch"),
    )
    return Session(order, GrowthWorld(order, TASK, {"cuda:0": data_on(device)}))


def records(session: Session, *episodes: int) -> list[Any]:
    return [session.train(episode, quiet, quiet).digest for episode in episodes]


def test_a_policy_update_does_not_wait_for_the_gpu(counted: Counted) -> None:
    """The policy is on the CPU. At its end an episode waits once more, for its held-out accuracies."""
    session = new_session(OWN_GPU, "off")
    counts_at_update = []
    records(session, 0)  # loads kernels
    counts_before = counted("waits"), counted("downloads")
    session.train(
        1, quiet, lambda _step: counts_at_update.extend([counted("waits"), counted("downloads"), counted("calls")])
    )
    assert counts_at_update == [counts_before[0] + 2 * 4 + 1, counts_before[1] + 2 * 4 + 1, counted("calls")]
    assert [counted("waits"), counted("downloads")] == counts_at_update[:2]


def test_a_run_uses_only_its_own_gpu(counted: Counted, tmp_path: Path) -> None:
    """It does not use torch's default GPU; mixing GPU and CPU tensors would raise."""
    counts_before = counted("calls", OTHER_GPU), counted("bytes", OTHER_GPU)
    session = new_session(OWN_GPU, "off")
    bank_of_run = counted("calls")
    session.warm_up(quiet)
    records(session, 0)
    (tmp_path / "policies" / "a").mkdir(parents=True)
    session.evaluate(tmp_path, quiet)
    session.resume(state_bytes.from_bytes(state_bytes.to_bytes(session.state())))
    assert counted("calls") > bank_of_run
    assert (counted("calls", OTHER_GPU), counted("bytes", OTHER_GPU)) == counts_before


@pytest.mark.parametrize("amp", [BF16, "fp16"])
def test_a_run_resumes_from_its_checkpoint_on_another_gpu(amp: str) -> None:
    """It gives the bits of an uninterrupted run."""
    whole = new_session(OWN_GPU, amp)
    first_session = new_session(torch.device("cuda:0"), amp)
    resumed_session = new_session(OWN_GPU, amp)
    expected = records(whole, 0, 1)
    first_records = records(first_session, 0)
    resumed_session.resume(state_bytes.from_bytes(state_bytes.to_bytes(first_session.state())))
    assert [*first_records, *records(resumed_session, 1)] == expected


def test_a_checkpoint_is_loaded_to_the_cpu() -> None:
    """Also if it contains a tensor of a GPU that is absent."""
    state = state_bytes.from_bytes(state_bytes.to_bytes({"tensor": torch.ones(3, device=OWN_GPU)}))
    assert state["tensor"].device.type == "cpu"


def test_mixing_tensors_of_two_gpus_raises_an_error() -> None:
    """On real GPUs and on the test device."""
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(3, device=OWN_GPU) + torch.ones(3, device="cuda:0")
    with pytest.raises(RuntimeError, match="same device"):
        torch.ones(3, device=OWN_GPU) + torch.ones(3)
    assert device_data().train.x.device.type == "cpu"
