"""`python -m workers.commands.describe`: what there is of machine, catalogues and the user's additions.

The preflight child: it imports torch so that the control plane need not. The questions, one JSON line on stdin, and
the answer are the structs of esper_ab.contracts.machine. It only reports, and decides nothing; to rehearse a trainer it
starts processes of its own.
"""

from __future__ import annotations

import os
import sys
import time
import timeit
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import msgspec
import numpy as np
import psutil
import torch

from esper_ab.contracts.below import folder_below
from esper_ab.contracts.catalog import entry, names
from esper_ab.contracts.gpu_names import is_beyond_one_instance
from esper_ab.contracts.installed_code import sources
from esper_ab.contracts.kinds import CONTROLLERS, GYMNASIUM, REWARDS, TRAINER, kind_of_task
from esper_ab.contracts.machine import DOING, ControllerQuestion, Device, Machine, Questions, TaskFacts, UserReward
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.messages import RewardCode
from esper_ab.contracts.own_packages import take_output
from esper_ab.contracts.process_start import process_started, usable_cores
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic, GrowthSettings
from esper_ab.contracts.source_files import copy_files
from esper_ab.contracts.trainer import TrainerFacts
from workers.datasets.task import Split, Task
from workers.devices.by_torch import pin, seen_gpus
from workers.growth.bank.bank import Bank
from workers.growth.measures import MEASURES
from workers.growth.rules.seeds import SeedTable
from workers.growth.samples import DeviceSplit
from workers.gymnasium_task.preflight import Probed, probe
from workers.native import library
from workers.native.binding import trains
from workers.trainer.rehearsal import rehearse as rehearse_trainer
from workers.user_rewards.lookup import as_planned, rehearse, user_function
from workers.vocabulary import Stage

_GPU_SIGNS = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidia0"))
_CPU_INFO = Path("/proc/cpuinfo")
_ENVS, _CHANNELS, _SIDE, _BATCH, _KERNEL = 4, 16, 8, 64, 3  # sizes of the timed convolution
_REPEATS, _MINIBATCHES, _TRIED_SIDE = 8, 4, 512  # of the convolution; of a timed epoch on a GPU; of a matrix of one MiB


def find_gpus(questions: Questions, seen: Sequence[tuple[str, Any]]) -> tuple[list[Device], str]:
    """Return the GPUs that are `seen`, in order, and a sentence on those that cannot be used, or "".

    Those that `questions` name are tried, and are not returned when they fail. The first that works is timed, too.
    """
    gpus, tried, broken = list[Device](), 0, list[str]()
    for index, (name, facts) in enumerate(seen):
        gpu = Device(
            name=f"cuda:{index}", title=facts.name, uuid=name, memory_bytes=facts.total_memory,
            capability=f"{facts.major}.{facts.minor}",
        )  # fmt: skip
        if gpu.name in questions.gpus or "cuda" in questions.gpus:
            tried += 1
            try:
                square = torch.ones(_TRIED_SIDE, _TRIED_SIDE, device=gpu.name)
                (square @ square).sum().item()  # waits for the GPU
                if tried == 1 + len(broken) and questions.hosts and questions.task in names("workers.tasks"):
                    gpu = msgspec.structs.replace(gpu, step_s=step_s(questions, torch.device(gpu.name)))
            except (RuntimeError, AssertionError) as error:  # the other from a build without CUDA
                broken.append(gpu.name + " (" + str(error).partition("\n")[0] + ")")
                continue
        gpus.append(gpu)
    return gpus, f"GPUs requested: {tried}, usable: {tried - len(broken)}; not {', '.join(broken)}" if broken else ""


def step_s(questions: Questions, device: torch.device) -> float:
    """Time an optimiser step of hosts with a seed in every slot, whose blueprints differ, as those of a run do."""
    task: Task = entry("workers.tasks", questions.task, "TASK")
    images, rows = min(questions.batch_size, task.sizes[0]), np.arange(questions.hosts)
    shown = Split(x=np.zeros((images, *task.image), np.float32), y=np.zeros(images, np.int64))
    settings, split = GrowthSettings(batch_size=images), DeviceSplit.of(shown, device, torch.float32)
    bank, table = Bank(task, task.slots, rows, settings, split.x), SeedTable.empty(len(rows), len(task.slots))
    bank.begin_episode([RngPath(0) / int(row) for row in rows])
    for row, slot in np.ndindex(table.stage.shape):
        table.stage[row, slot], table.blueprint[row, slot] = Stage.TRAINING, (row + slot) % len(settings.blueprints)
        bank.germinate(row, slot, (row + slot) % len(settings.blueprints), RngPath(0) / row / slot)
    order = np.zeros((len(rows), images * _MINIBATCHES), np.int64)
    # The first epoch warms up.
    return timeit.repeat(lambda: bank.train_epoch(table, rows, split, order), repeat=2, number=1)[-1] / _MINIBATCHES


def _cores() -> tuple[Device, ...]:
    """Return the usable cores."""
    memory_bytes, cores = psutil.virtual_memory().total, range(usable_cores())
    return tuple(Device(name=f"cpu:{i}", title="", uuid="", memory_bytes=memory_bytes) for i in cores)


def cpu_bf16(flags: Iterable[str]) -> Literal["", "avx512_bf16", "amx_bf16"]:
    """Return the best instructions for bfloat16 among a processor's `flags`, as Linux names them; "" for none."""
    if "amx_bf16" in flags:
        return "amx_bf16"
    return "avx512_bf16" if "avx512_bf16" in flags else ""


def _cpu_flags() -> list[str]:
    """Return the flags of the first processor; none where there is no /proc/cpuinfo."""
    if not _CPU_INFO.is_file():
        return []
    lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])


def gpu_problem(gpu_there: bool, cuda_build: str | None, usable: int, pool: str | None) -> str:
    """Return why torch cannot use an existing GPU; "" when it can, without a GPU, and with an empty pool."""
    if not gpu_there or usable or pool in ("", "-1"):
        return ""
    if not cuda_build:
        return f"this machine has a GPU, but torch {torch.__version__} is a build without CUDA, and others are not used"
    if is_beyond_one_instance(pool):
        return (
            f"CUDA_VISIBLE_DEVICES={pool} names an instance of MIG beside others, and a process sees one instance "
            "alone: name one, and launch another experiment for each of the others"
        )
    wanted = f" in CUDA_VISIBLE_DEVICES={pool}" if pool is not None else ""
    return f"this machine has an NVIDIA GPU, but torch {torch.__version__} finds none{wanted}"


def task_facts(task: Task) -> TaskFacts:
    """Compute sizes and costs of a task from its host's shape."""
    side_h, side_w = task.image[1:]
    before, total, values = task.host.in_channels, 0, 0
    for level in range(task.host.levels):
        after = task.host.base << level
        total += before * after * task.host.kernel**2 * side_h * side_w
        values += after * side_h * side_w
        before = after
        if level < task.host.pools:
            side_h, side_w = side_h // 2, side_w // 2
    return TaskFacts(
        name=task.name,
        title=task.title,
        measures=MEASURES,
        slots=task.slots,
        sizes=task.sizes,
        sample_values=task.image[0] * task.image[1] * task.image[2],
        host_params=task.host.params,
        host_multiply_adds=total + before * task.host.classes,
        classes=task.host.classes,
        host_values=values,
    )


def multiply_adds_per_s() -> float:
    """Time forward and backward of a grouped convolution as banks train it, by one thread."""
    pin(Arithmetic())
    width = _ENVS * _CHANNELS
    x = torch.ones(_BATCH, width, _SIDE, _SIDE)
    weight = torch.ones(width, _CHANNELS, _KERNEL, _KERNEL, requires_grad=True)

    def pass_both_ways() -> None:
        loss = torch.nn.functional.conv2d(x, weight, padding=1, groups=_ENVS).sum()
        loss.backward()  # type: ignore[no-untyped-call]

    forward = _BATCH * width * _CHANNELS * _KERNEL**2 * _SIDE**2
    return 3 * forward * _REPEATS / timeit.repeat(pass_both_ways, repeat=2, number=_REPEATS)[-1]


def user_reward(reference: str, n_slots: int) -> UserReward:
    """Load and rehearse a user's reward function, and report its files.

    The function called is the one that runs will load: the copy of a file, or an installed module.
    """
    _doing(f"rehearsing {reference}")
    try:
        function, code = user_function(reference)
        copied = code.files if reference.rpartition(":")[0].endswith(".py") else ()
        found = UserReward(reference=reference, sha256=code.sha256, problem="", root=str(code.root), files=copied)
        with TemporaryDirectory() as folder:
            if copied:
                copy_files(code.root, copied, folder_below(Path(folder), "copy"))
                planned = RewardCode(reference=reference, folder="copy", file=copied[0], sha256=code.sha256)
                function = as_planned([planned], Path(folder))(reference)
            found = msgspec.structs.replace(found, repeats=rehearse(function, reference, n_slots))
    except (ValueError, OSError) as error:
        problem = str(error).removeprefix(f"reward mode {reference!r}").removeprefix(":").strip()
        return UserReward(reference=reference, sha256="", problem=problem)
    return found


def trainer_task(questions: Questions, facts: TrainerFacts) -> TaskFacts:
    """Return a trainer as a task: what it measures, as far as its rehearsal could tell."""
    assert questions.trainer is not None, "it was asked about"
    assert questions.trainer_outcome is not None, "its outcome is declared"
    found = tuple(Measure(name=name, label=metric[:60]) for metric, name in facts.metrics.items())
    return TaskFacts(
        name=questions.task, title=questions.trainer.reference, kind=TRAINER,
        measures=TaskMeasures(outcome=questions.trainer_outcome, measures=found),
    )  # fmt: skip


def _task_problem(name: str, data_dir: str) -> str:
    if name not in names("workers.tasks"):
        return ""  # the caller refuses it, listing the existing names
    _doing(f"loading the data of {name}")
    try:
        entry("workers.tasks", name, "TASK").load(data_dir)
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _controller_problem(question: ControllerQuestion, slots: tuple[str, ...]) -> str:
    try:
        make = entry("workers.controllers", question.settings.name, "make")
        make(question.settings, slots, question.blueprints)
    except ValueError as error:
        return str(error)
    return ""


def controller_problems(questions: Questions) -> dict[str, str]:
    """Return, by group, why its controller cannot be made; the caller refuses unknown names."""
    if not questions.controllers or questions.task not in names("workers.tasks"):
        return {}
    task: Task = entry("workers.tasks", questions.task, "TASK")
    there = names("workers.controllers")
    found = {
        question.group: _controller_problem(question, questions.slots or task.slots)
        for question in questions.controllers
        if question.settings.name in there
    }
    return {group: problem for group, problem in found.items() if problem}


def _doing(what: str) -> None:
    """Tell the waiting command, on stderr, what this process does now; until the first such line it imports torch."""
    sys.stderr.write(f"{DOING}{what}\n")
    sys.stderr.flush()


def _age_s() -> float:
    """Return the seconds since this process was started."""
    started = process_started(os.getpid())
    assert started is not None, "it is alive"
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def describe(questions: Questions) -> Machine:
    """Return everything that planning needs to know."""
    gpu_there = any(sign.exists() for sign in _GPU_SIGNS) or bool(torch.version.hip and torch.cuda.device_count())
    pool = os.environ.get("CUDA_VISIBLE_DEVICES")
    kind = kind_of_task(questions.task)
    found = probe(questions, _doing) if kind == GYMNASIUM else Probed()
    tasks = tuple(task_facts(entry("workers.tasks", name, "TASK")) for name in names("workers.tasks"))
    blueprints = names("workers.blueprints")
    chains = [name for name in blueprints if trains(entry("workers.blueprints", name, "BLUEPRINT"))]
    own = None if questions.trainer is None else rehearse_trainer(questions.trainer, _doing)
    if own is not None:
        tasks = (trainer_task(questions, own),)
    slots = questions.slots or next((task.slots for task in tasks if task.name == questions.task), ("",))
    code = found.code if kind == GYMNASIUM else tuple(user_reward(one, len(slots)) for one in questions.user_rewards)
    _doing("measuring this machine")  # and no code of the user's any more
    pin(Arithmetic())  # before CUDA begins
    try:
        gpus, unusable = find_gpus(questions, seen_gpus(pool))  # now: a trainer's rehearsal had them to itself
    except RuntimeError as error:
        gpus, unusable = [], f"CUDA does not start: {error}"
    return Machine(
        torch_version=str(torch.__version__),
        cuda_build=torch.version.cuda or "",
        devices=(*gpus, *_cores()),
        rewards=REWARDS[kind] if kind in REWARDS else names("workers.rewards"),
        controllers=CONTROLLERS[kind] if kind in CONTROLLERS else names("workers.controllers"),
        blueprints=blueprints,
        tasks=(*tasks, *found.tasks),
        kernels=library.kernels(),
        native_blueprints=tuple(chains),
        multiply_adds_per_s=multiply_adds_per_s(),
        cpu_bf16=cpu_bf16(_cpu_flags()),
        sources=sources(),
        sees_shared_file=not questions.shared_file or Path(questions.shared_file).is_file(),
        user_rewards=code,
        trainer=own,
        controller_problems=controller_problems(questions),
        reward_problems=found.reward_problems,
        task_problem="" if own else found.problem or _task_problem(questions.task, questions.data_dir),
        gpu_problem=gpu_problem(gpu_there, torch.version.cuda, len(gpus), pool) if gpus or not unusable else unusable,
        unusable_gpus=unusable,
    )


if __name__ == "__main__":
    start_s = _age_s()  # of an interpreter and its imports, as of every worker: before anything else is done
    output = take_output()
    answer = describe(msgspec.json.decode(sys.stdin.buffer.readline(), type=Questions))
    output.write(msgspec.json.encode(msgspec.structs.replace(answer, start_s=start_s)))
    output.close()
