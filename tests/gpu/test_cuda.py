"""Whole experiments on GPUs, with devices read from the journal. Without a GPU they use the test device."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu.device import build
from support.journals.ready_journals import records_of

from esper_ab.journal.events import EpisodeRecorded
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]
SMALL = {
    "--task": "synthetic",
    "--episodes": "2",
    "--steps": "4",
    "--n-envs": "2",
    "--seeds": "1",
    "--eval-episodes": "2",
}
LARGER = ("--steps", "8", "--n-envs", "4", "--seeds", "2", "--eval-episodes", "4")
ALIKE = ("--groups", "a=shaped,b=shaped")
SHARED = ("--devices", "cuda:0", "--placement", "share")
BOTH_GPUS = ("--devices", "cuda:0", "cuda:1")
Env = dict[str, str]
MadeGpus = Callable[..., Env]
two_gpus = pytest.mark.gpus(2)
# Kills the first incarnation of worker w01 in the second of three episodes of four steps.
REWARD = """
import itertools, multiprocessing, os, signal
steps = itertools.count(1)
def reward(facts, settings):
    if multiprocessing.current_process().name == "w01/1" and next(steps) == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return facts.val_acc
"""


def begun(env: Env, module: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *args], env=env, capture_output=True, text=True, timeout=600, check=False
    )


def output_of(env: Env, module: str, *args: str | Path) -> str:
    """Run a command and return its output."""
    process = begun(env, module, *args)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def small(*args: str) -> tuple[str, ...]:
    """Add the flags of SMALL that `args` do not set; a repeated flag is refused."""
    return (*(argument for flag in SMALL.items() if flag[0] not in args for argument in flag), *args)


def launched(env: Env, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return begun(env, "esper_ab.launch", *small(*args), "--output-dir", folder, "--name", "run", "--quiet")


def train(env: Env, folder: Path, *args: str) -> History:
    process = launched(env, folder, *args)
    assert process.returncode == 0, process.stdout + process.stderr
    return load(folder / "run").history


def devices_of_environments(history: History) -> dict[str, Counter[str]]:
    """For every run, the devices of its environments in the last episode, counted."""
    return {name: Counter(env.device for env in records_of(run)[-1].envs) for name, run in history.runs.items()}


def digests(history: History, run: str) -> list[str]:
    """Return the digests of a run's records; that of its evaluation is the last."""
    ended = history.runs[run]
    return [*(record.digest for record in records_of(ended)), ended.evaluation.digest]


def lines_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the processes that began with CUDA on the test device ("used"), or looked for its GPUs ("asked")."""
    return [json.loads(line) for line in (folder / "gpus" / name).read_text().splitlines()]


@pytest.mark.real_gpu
@pytest.mark.parametrize("task", ["synthetic", "digits"])
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), id="default"),
        pytest.param(("--no-deterministic",), id="free"),
        pytest.param(("--amp", "bf16"), id="bf16", marks=pytest.mark.bf16),
        pytest.param(("--amp", "fp16"), id="fp16"),
    ],
)
def test_two_groups_share_one_gpu(tmp_path: Path, gpus: Env, task: str, flags: tuple[str, ...]) -> None:
    history = train(gpus, tmp_path, "--groups", "shaped,simplified", *LARGER, *SHARED, *flags, "--task", task)
    assert {run.ref.device for run in history.runs.values()} == {"cuda:0/0", "cuda:0/1"}
    assert all(counts == {"cuda:0": 4} for counts in devices_of_environments(history).values())
    assert all(run.evaluation is not None for run in history.runs.values())


@pytest.mark.real_gpu
def test_equal_groups_have_equal_records_on_a_gpu(tmp_path: Path, gpus: Env) -> None:
    """In separate processes on the same GPU, as --deterministic, the default, promises."""
    history = train(gpus, tmp_path, *ALIKE, *LARGER, *SHARED, "--task", "digits")
    for replicate in range(2):
        assert digests(history, f"a/{replicate}") == digests(history, f"b/{replicate}")


@two_gpus
def test_if_no_devices_are_named_each_group_trains_on_its_own_gpu(tmp_path: Path, gpus: Env) -> None:
    process = launched(gpus, tmp_path, *ALIKE)
    assert process.returncode == 0, process.stdout + process.stderr
    assert " 2 at a time on cuda:0 and cuda:1" in " ".join(process.stdout.split())
    plan = (tmp_path / "run" / "plan.txt").read_text()
    assert "environments per device: cuda:0: 2 environments, cuda:1: 2\n" in plan
    counts = devices_of_environments(load(tmp_path / "run").history)
    assert counts == {"a/0": {"cuda:0": 2}, "b/0": {"cuda:1": 2}}


@two_gpus
@pytest.mark.slow
def test_a_gpu_without_bf16_trains_in_float16(tmp_path: Path, made_gpus: MadeGpus) -> None:
    """bf16 is refused in one line that suggests fp16; equal groups in fp16 have equal records."""
    env = made_gpus(capability=[7, 5])
    refused_launch = launched(env, tmp_path, *ALIKE, *BOTH_GPUS, "--amp", "bf16")
    assert refused_launch.returncode == 2
    assert refused_launch.stderr.splitlines()[-1] == (  # on a busy machine, a line about the wait comes first
        "error: group 'a': growth.amp=bf16 needs compute capability 8.0, but cuda:0 has 7.5; choose growth.amp=fp16 or "
        "off"
    )
    history = train(env, tmp_path, *ALIKE, *BOTH_GPUS, "--amp", "fp16")
    assert {run.ref.device for run in history.runs.values()} == {"cuda:0", "cuda:1"}
    assert digests(history, "a/0") == digests(history, "b/0")


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param(("cuda:0",), id="shared", marks=pytest.mark.slow),
        pytest.param(("cuda:0", "cuda:1"), id="one each", marks=(two_gpus, pytest.mark.slow)),
    ],
)
def test_equal_groups_have_equal_records_after_a_worker_death(
    tmp_path: Path, gpus: Env, devices: tuple[str, ...]
) -> None:
    """The groups run at the same time, each on its own GPU or sharing one.

    `evaluate` repeats an evaluation, and the experiment resumes, on exchanged GPUs if there are two.
    """
    (tmp_path / "mine.py").write_text(REWARD)
    groups = ",".join(f"{name}={tmp_path / 'mine.py'}:reward" for name in "ab")
    history = train(gpus, tmp_path, "--groups", groups, "--devices", *devices, "--episodes", "3", "--yes")
    lanes = {"cuda:0/0", "cuda:0/1"} if len(devices) == 1 else {"cuda:0", "cuda:1"}
    assert {run.ref.device for run in history.runs.values()} == lanes
    assert digests(history, "a/0") == digests(history, "b/0")
    assert [entry.category for entry in history.incidents] == ["worker_death", "restart"]

    policy = tmp_path / "run" / "policies" / "a" / "0.pt"
    rows = json.loads(output_of(gpus, "esper_ab.commands.cli", "evaluate", policy, "--device", devices[-1], "--json"))
    episodes = history.runs["a/0"].evaluation.episodes
    for row in rows:
        hosts = [episode.result.outcome for episode in episodes if episode.actions == row["actions"]]
        assert row["held_out_accuracy"] == float(np.mean(hosts))

    resumed_dir = tmp_path / "again"
    lines = (tmp_path / "run" / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    events = list(read(tmp_path / "run" / JOURNAL_NAME))
    first_record = next(index for index, event in enumerate(events) if isinstance(event, EpisodeRecorded))
    shutil.copytree(tmp_path / "run", resumed_dir)
    (resumed_dir / JOURNAL_NAME).write_bytes(b"".join(lines[: first_record + 2]))
    pool = {"CUDA_VISIBLE_DEVICES": "1,0"} if len(devices) == 2 else {}
    output_of(gpus | pool, "esper_ab.commands.cli", "resume", resumed_dir)
    resumed_history = load(resumed_dir).history
    assert digests(resumed_history, "a/0") == digests(history, "a/0") == digests(resumed_history, "b/0")


@pytest.fixture(scope="module")
def failed_once(test_device: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, History]:
    """The folder and history of an experiment on two GPUs, one of which fails once."""
    folder = tmp_path_factory.mktemp("failed_once")
    (folder / "gpus").mkdir()
    env = build.environment(folder / "gpus", test_device, alone=True, lost_after={"1": 4000}, comes_back=True)
    return folder, train(env, folder, *ALIKE, *BOTH_GPUS)


def test_a_failed_gpu_is_reused_by_one_process_at_a_time(failed_once: tuple[Path, History]) -> None:
    folder, history = failed_once
    assert digests(history, "a/0") == digests(history, "b/0")
    assert [entry.category for entry in history.incidents] == ["worker_death", "restart"]
    _, *workers = lines_of(folder, "used")
    assert sorted(worker["gpus"] for worker in workers) == [[0], [1], [1]]
    assert {worker["command"][0] for worker in workers} == {"w00/1", "w01/1", "w01/2"}


def test_only_the_preflight_and_workers_query_gpus(failed_once: tuple[Path, History]) -> None:
    """The coordinator, the start process and other children do not; a worker sees only its own GPU."""
    preflight, *workers = lines_of(failed_once[0], "asked")
    assert "workers.commands.describe" in preflight["command"]
    assert sorted(worker["command"][0] for worker in workers) == ["w00/1", "w01/1", "w01/2"]
    assert sorted(worker["gpus"] for worker in workers) == [[0], [1], [1]]


@two_gpus
@pytest.mark.slow  # what the worker says: tests/process/test_entry.py; what follows: the machine's unit tests
def test_the_error_about_a_lost_gpu_names_the_gpu(tmp_path: Path, made_gpus: MadeGpus) -> None:
    process = launched(made_gpus(lost_after={"1": 1500}), tmp_path, *ALIKE, *BOTH_GPUS)
    assert process.returncode == 4, process.stdout + process.stderr
    assert "unspecified launch failure" in process.stderr
    assert "WrongDevice: lane cuda:1 is GPU-00000001" in process.stderr


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.real_gpu), pytest.param(2, marks=two_gpus)])
def test_a_run_can_use_gpus_and_a_cpu_together(tmp_path: Path, gpus: Env, count: int) -> None:
    devices = (*BOTH_GPUS[1 : 1 + count], "cpu:0")
    device_count = str(len(devices))
    history = train(
        gpus,
        tmp_path,
        *ALIKE,
        "--devices",
        *devices,
        "--devices-per-run",
        device_count,
        "--placement",
        "share",
        "--n-envs",
        device_count,
    )
    assert all(counts == dict.fromkeys(devices, 1) for counts in devices_of_environments(history).values())
    assert digests(history, "a/0") == digests(history, "b/0")


@two_gpus
def test_running_out_of_gpu_memory_ends_the_experiment_with_a_remedy(tmp_path: Path, made_gpus: MadeGpus) -> None:
    """The preflight cannot foresee it: another process takes the memory of both GPUs later."""
    limit_bytes = 8 << 30
    env = made_gpus(memory=limit_bytes, taken_later={"0": limit_bytes - (1 << 20), "1": limit_bytes - (1 << 20)})
    process = launched(env, tmp_path, *ALIKE, *BOTH_GPUS)
    assert process.returncode == 4, process.stdout + process.stderr
    assert "fewer --n-envs (in Python n_envs) or a smaller growth.batch_size need less" in process.stderr
    assert not [entry for entry in load(tmp_path / "run").history.incidents if entry.category == "restart"]


def planned(env: Env, *args: str) -> str:
    """Return the text of the plan on one line."""
    command = (*small(*args), "--dry-run", "--output-dir", env["TEST_GPUS"], "-v")
    return " ".join(output_of(env, "esper_ab.launch", *command).split())


@pytest.mark.gpus(8)
def test_a_plan_for_eight_gpus_skips_a_gpu_without_free_memory(made_gpus: MadeGpus) -> None:
    """Each of the others is used at most once."""
    env = made_gpus(taken={"5": 8 << 30})
    plan = planned(env, "--groups", "a=shaped,b=shaped,c=shaped", "--devices", "cuda", "--devices-per-run", "2")
    assert "0: a on cuda:0+cuda:1, b on cuda:2+cuda:3, c on cuda:4+cuda:6 " in plan
    assert "GPUs requested: 8, usable: 7; not cuda:5 (CUDA out of memory." in plan
    assert "1 of 7 devices stay idle: cuda:7." in plan


def test_a_torch_build_for_other_gpus_is_refused(tmp_path: Path, made_gpus: MadeGpus) -> None:
    """On ROCm, torch names its GPUs as CUDA does."""
    env = made_gpus(cuda=None, hip="6.4")
    process = launched(env, tmp_path, *ALIKE)
    assert process.returncode == 2
    assert "this machine has a GPU, but torch" in process.stderr
