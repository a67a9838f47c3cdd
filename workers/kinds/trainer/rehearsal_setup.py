"""What the rehearsals of Python trainers and of commands share: seeds, random numbers, devices. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from esper_ab.contracts.errors import SettingName
from esper_ab.contracts.marked_settings import marked
from esper_ab.contracts.process_start import usable_cores
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic
from esper_ab.contracts.trainer import TrainerQuestion, TrainerValue
from esper_ab.contracts.wording import counted
from workers.devices import pinned
from workers.devices.signs import gpu_is_there

SEEDS = 3  # seeds to try before equal results count as one run, because two seeds may both reach a task's maximum
_MOST_AT_ONCE = 8  # runs, which share the machine's memory
Doing = Callable[[str], None]


def text_of(settings: Mapping[str, TrainerValue]) -> str:
    """Return settings as text: "steps=1000, lr=0.1"."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def rng_of(question: TrainerQuestion, seed_index: int) -> RngPath:
    """Return the address of the random numbers of the rehearsal's seed `seed_index`."""
    return RngPath(question.rng_seed) / "rehearsal" / seed_index


def at_once(pins: Mapping[str, str], threads: int) -> int:
    """Return how many runs of a rehearsal work at the same time: one, if a run may need all of a GPU's memory."""
    if pins["CUDA_VISIBLE_DEVICES"]:
        return 1
    return max(1, min(usable_cores() // threads, _MOST_AT_ONCE))


def pins_of(question: TrainerQuestion) -> dict[str, str]:
    """Return the environment variables of a run's process: arithmetic and, if the run needs GPUs, which ones.

    Raises ValueError if a run needs more GPUs than there are. A machine without any has runs on its CPU.
    """
    own_gpus = [""]
    if question.gpus and gpu_is_there():
        from workers.devices.by_torch import seen_gpus  # imports torch

        names = [name for name, _ in seen_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))]
        name_by_device = {f"cuda:{index}": name for index, name in enumerate(names)}
        pool = names if "cuda" in question.gpus else [name_by_device.get(gpu, "") for gpu in question.gpus]
        own_gpus = pool[: question.devices_per_run]
        n_own = len(list(filter(None, own_gpus)))
        if 0 < n_own < question.devices_per_run:
            per_run = marked(SettingName("devices_per_run", question.devices_per_run))
            raise ValueError(f"{per_run}, but the pool has {counted(n_own, 'GPU')}")
    return pinned.variables(own_gpus, Arithmetic(threads=question.threads, deterministic=question.deterministic))
