"""Part 5: float32, bf16 and fp16: losses of an epoch, time of a minibatch, and an experiment with a group of each."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from benchmarks.gpu import on_gpu
from benchmarks.machine import interleaved, spread
from benchmarks.markdown import hosts_of, ranged, table
from benchmarks.worlds import Case

from signoff.machine import SHARED, Machine

TITLE = "Precision"
BUDGET_S = 45
AMPS = ("off", "bf16", "fp16")
TOLERANCE = 0.02  # relative difference of an epoch's losses from float32
FAR_POINTS = 25.0  # a run's outcome has a standard deviation of 4 points
_SIZES = {"--episodes": "1", "--eval-episodes": "4", "--steps": "8"}
_SMALL = {"--task": "synthetic", "--episodes": "1", "--steps": "4", "--n-envs": "2", "--eval-episodes": "2"}


def measure(machine: Machine) -> dict[str, Any]:
    """Measure a minibatch in each precision, and train a group in each."""
    has_bf16 = bool(torch.cuda.is_bf16_supported())
    amps = [amp for amp in AMPS if amp != "bf16" or has_bf16]
    n_envs, repeats = (16, 5) if machine.real else (2, 1)
    cells = [_cell(task, amps, n_envs, repeats) for task in ("digits", "cifar10")]
    half_precision_groups = " --group ".join(f"{amp}:growth.amp={amp}" for amp in amps if amp != "off")
    sizes = _SIZES if machine.real else _SMALL
    flags = {"--groups": "off=shaped", "--group": half_precision_groups, "--seeds": "1", **SHARED, **sizes}
    history = machine.launch("precision", flags)
    outcomes = {}
    for run in history.runs.values():
        assert run.evaluation is not None
        outcomes[run.ref.group_id] = float(np.mean([episode.result.outcome for episode in run.evaluation.episodes]))
    return {"bf16": has_bf16, "cells": cells, "outcomes": outcomes}


def _cell(task: str, amps: list[str], n_envs: int, repeats: int) -> dict[str, Any]:
    """Time a minibatch in each precision, and compare the losses of the first epoch with those of float32."""
    cases = {amp: Case(task=task, n_envs=n_envs, live_seeds=3, batches=2, amp=amp) for amp in amps}  # type: ignore[arg-type]
    worlds = {amp: on_gpu(case) for amp, case in cases.items()}
    losses = {amp: world.bank_epoch()[0].numpy() for amp, world in worlds.items()}
    laps = interleaved({amp: world.bank_epoch for amp, world in worlds.items()}, repeats)
    return {
        "case": asdict(cases["off"]),
        "ms": {amp: spread([1e3 * lap.wall / 2 for lap in laps[amp]]) for amp in amps},
        "difference": {amp: float(np.max(np.abs(losses[amp] / losses["off"] - 1.0))) for amp in amps},
    }


def problems(findings: dict[str, Any]) -> list[str]:
    """Losses or outcomes that are far from those of float32."""
    lines = [] if findings["cells"] else ["nothing was measured"]
    for cell in findings["cells"]:
        for amp, difference in cell["difference"].items():
            if not difference <= TOLERANCE:
                lines.append(
                    f"{hosts_of(cell['case'])} in {amp}: losses differ by {difference:.1e}, allowed {TOLERANCE}"
                )
    for amp, outcome in findings["outcomes"].items():
        if not math.isfinite(outcome) or abs(outcome - findings["outcomes"]["off"]) > FAR_POINTS:
            lines.append(f"the group in {amp} reached {outcome:.1f}, in float32 {findings['outcomes']['off']:.1f}")
    return lines


def render(findings: dict[str, Any]) -> list[str]:
    """Return tables of times, differences and outcomes."""
    rows = [
        (hosts_of(cell["case"]), cell["case"]["n_envs"], amp, ranged(cell["ms"][amp]), f"{difference:.1e}")
        for cell in findings["cells"]
        for amp, difference in cell["difference"].items()
    ]
    reached = ", ".join(f"{amp} {outcome:.1f}" for amp, outcome in findings["outcomes"].items())
    remark = [] if findings["bf16"] else ["", "This GPU has no bfloat16."]
    return [
        *table("hosts | n_envs | growth.amp | ms per minibatch | losses differ from float32's by", rows),
        "",
        f"Outcomes of one short run in each precision, which show only that it trains: {reached}.",
        *remark,
    ]
