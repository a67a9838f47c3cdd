"""Fixed schedules: found by a coordinate search once, and at random with a given number of hosts.

They are what learning has to beat: they look at no host, and their grammar holds what a policy must learn first, that a
seed is advanced and never pruned.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from esper_ab.contracts.rng import RngPath, run_path
from esper_ab.contracts.settings import (
    DEFAULT_BLUEPRINTS,
    ControllerSettings,
    GrowthSettings,
    HostKernel,
    RewardSettings,
)

if TYPE_CHECKING:
    from workers.growth.samples import DeviceData

Schedule = tuple[str, ...]

TASK, SLOTS, STEPS = "digits", ("early", "mid", "late"), 25
BATCH_SIZE = 64  # of host training; everything else is the default
COORDINATE_RNG_SEED, COORDINATE_HOSTS = 77, 8
TARGETS = ("0.5", "0.7", "1.0")


@functools.cache
def _world() -> tuple[HostKernel, DeviceData]:
    """What trains hosts here, as `--kernel auto` has it, and the task's data."""
    import torch

    from esper_ab.contracts import catalog
    from workers.growth.samples import DeviceData
    from workers.native.library import kernels

    torch.set_num_threads(1)
    kernel = next((kernel.name for kernel in kernels() if not kernel.problem), "torch")
    return kernel, DeviceData.of(catalog.entry("workers.tasks", TASK, "TASK").load(""), torch.device("cpu"))


def grade(schedule: Schedule, hosts: int, path: RngPath) -> float:
    """Mean validation accuracy at the end of `hosts` hosts grown by `schedule`, percent."""
    from esper_ab.contracts import catalog
    from workers.controllers.schedule import make
    from workers.environments import Stopwatch, paths_below
    from workers.growth.environment import EnvSpec, GrowthEnv
    from workers.run.episode import play

    kernel, data = _world()
    spec = EnvSpec(
        task=catalog.entry("workers.tasks", TASK, "TASK"),
        slots=SLOTS,
        steps=STEPS,
        env_devices=("cpu",) * hosts,
        growth=GrowthSettings(batch_size=BATCH_SIZE),
        reward=RewardSettings(),
        kernel=kernel,
    )
    env = GrowthEnv(spec, {"cpu": data}, Stopwatch())
    controller = make(ControllerSettings(schedule=schedule), SLOTS, spec.growth.blueprints)
    result = play(env, paths_below(path, hosts), controller, {}, Stopwatch(), lambda _step: None)
    return float(np.mean([env.measures["val_accuracy"] or 0.0 for env in result.envs]))


def plan_of(blueprints: tuple[str, ...], style: str, tempo: int) -> Schedule:
    """One germination per step in network order, then every seed on to a fossil as soon as it may."""
    births = [
        f"{step}:germinate:{slot}:blueprint={blueprint}:style={style}:tempo={tempo}"
        for step, (slot, blueprint) in enumerate(zip(SLOTS, blueprints, strict=True), start=1)
    ]
    advances = [f"{len(SLOTS)}:advance:{slot}" for slot in SLOTS for _ in range(3)]
    return (*births, *advances, *(f"{len(SLOTS)}:fossilize:{slot}" for slot in SLOTS))


def coordinate_search(file: Path) -> Schedule:
    """Search over the blueprint of every slot, then style and tempo; kept in `file`."""
    from workers.vocabulary import STYLES, TEMPOS

    if file.exists():
        return tuple(json.loads(file.read_text())["schedule"])
    path = run_path(COORDINATE_RNG_SEED, 0) / "schedule-search"
    best: tuple[tuple[str, ...], str, int] = (("conv_light",) * len(SLOTS), "sigmoid_add", 3)
    tried: dict[str, float] = {}
    for axis in range(len(SLOTS) + 2):
        if axis < len(SLOTS):
            options = [((*best[0][:axis], n, *best[0][axis + 1 :]), *best[1:]) for n in DEFAULT_BLUEPRINTS]
        elif axis == len(SLOTS):
            options = [(best[0], style, best[2]) for style, _, _ in STYLES]
        else:
            options = [(*best[:2], tempo) for tempo in TEMPOS]
        scores = [grade(plan_of(*option), COORDINATE_HOSTS, path) for option in options]
        tried |= {json.dumps(option): score for option, score in zip(options, scores, strict=True)}
        best = options[int(np.argmax(scores))]
        print(f"schedule search: {best} {max(scores):.1f} % on validation", flush=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"schedule": plan_of(*best), "choice": best, "tried": tried}, indent=1))
    return plan_of(*best)


def random_plan(rng: np.random.Generator) -> Schedule:
    """One to three germinations at random steps, with random choices; all advance, some to fossils, none is pruned."""
    from workers.vocabulary import STYLES, TEMPOS

    entries: list[str] = []
    for slot in rng.permutation(SLOTS)[: rng.integers(1, len(SLOTS) + 1)]:
        step = int(rng.integers(1, 11))
        blueprint, (style, _, _) = rng.choice(DEFAULT_BLUEPRINTS), STYLES[rng.integers(len(STYLES))]
        how = f"blueprint={blueprint}:style={style}:tempo={rng.choice(TEMPOS)}:alpha_target={rng.choice(TARGETS)}"
        entries += [f"{step}:germinate:{slot}:{how}", *[f"{step}:advance:{slot}"] * 3]
        if rng.random() < 0.5:
            entries.append(f"{step}:fossilize:{slot}")
    return tuple(entries)


def random_search(file: Path, hosts: int, rng_seed: int) -> Schedule:
    """Best of `hosts` random plans by the validation accuracy of one host each; kept in `file`."""
    if file.exists():
        return tuple(json.loads(file.read_text())["schedule"])
    path = run_path(rng_seed, 0) / "random-search"
    plans = [random_plan((path / "plan" / number).generator()) for number in range(hosts)]
    scores = [grade(plan, 1, path / "host" / number) for number, plan in enumerate(plans)]
    best = int(np.argmax(scores))
    found = {"schedule": plans[best], "validation": scores[best], "after": np.maximum.accumulate(scores).tolist()}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1))
    return plans[best]
