"""What the rehearsals of Python trainers and of commands share: seeds, random numbers, devices. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic
from esper_ab.contracts.trainer import TrainerQuestion, TrainerValue
from workers.devices import pinned

SEEDS = 3  # seeds to try before equal results count as one run, because two seeds may both reach a task's maximum
Doing = Callable[[str], None]


def text_of(settings: Mapping[str, TrainerValue]) -> str:
    """Return settings as text: "steps=1000, lr=0.1"."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def rng_of(question: TrainerQuestion, seed_index: int) -> RngPath:
    """Return the address of the random numbers of the rehearsal's seed `seed_index`."""
    return RngPath(question.rng_seed) / "rehearsal" / seed_index


def pins_of(question: TrainerQuestion) -> dict[str, str]:
    """Return the environment variables of a run's process: arithmetic and, if the run needs a GPU, which GPU."""
    own = [""]
    if question.gpu:
        from workers.devices.by_torch import seen_gpus  # imports torch

        names = [name for name, _ in seen_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))]
        seen = {f"cuda:{index}": name for index, name in enumerate(names)}
        own = names[:1] if question.gpu == "cuda" else [seen.get(question.gpu, "")]
    return pinned.variables(own, Arithmetic(threads=question.threads, deterministic=question.deterministic))
