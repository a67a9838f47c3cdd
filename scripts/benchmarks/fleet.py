"""Benchmark of a coordinator with thousands of runs behind node supervisors, over TCP with keys: start, release,
memory.
"""

import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import coordination
from benchmarks.fake_fleet import Fleet
from benchmarks.machine import QUICK_REPEATS
from esper_ab.control import experiment_run

RUNS = (1_000, 4_000, 10_000)
FEWER_RUNS = (1_000,)
_RUNS_OF_NODE = 500
_N_ENVS = 4
_EPISODES = 3
GOAL = {"start_s": 300.0, "release_s": 5.0, "memory_mib": 2048.0}  # of 10,000 runs on one free core


def measure(repeats: int) -> dict[str, Any]:
    """Measure each size in its own process, so that memory is measured separately."""
    cells = []
    for runs in FEWER_RUNS if repeats <= QUICK_REPEATS else RUNS:
        result = in_a_process(runs)
        cells.append(result)
        print(json.dumps(result), flush=True)
    return {"goal": GOAL, "cells": cells}


def in_a_process(runs: int) -> dict[str, Any]:
    """Measure a cell with a new coordinator process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(cell, (runs,))


def cell(runs: int, runs_of_node: int = _RUNS_OF_NODE) -> dict[str, Any]:
    """Run an experiment with this many fake runs at once, in pairs; measure all rounds except the first episode's."""
    plan = coordination.plan_of(runs // 2, 2, _N_ENVS, _EPISODES)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        fleet = Fleet(pools=-(-runs // runs_of_node), workers=runs, transport="tcp")
        memory_before_mib = _memory_mib()
        cpu = time.process_time()
        begin_s = time.monotonic()
        experiment_run.run(plan, Path(folder), fleet, ())
        results = fleet.results()
    rounds = results["rounds"][2:-1]
    release_durations = [
        max(round_times["released"].values()) - max(round_times["sent"].values()) for round_times in rounds
    ]
    whole = [max(round_times["released"].values()) - min(round_times["sent"].values()) for round_times in rounds]
    core = float(np.median([round_times["coordinator_s"] for round_times in rounds]))
    return {
        "runs": runs,
        "nodes": fleet.pools,
        "rounds": len(rounds),
        "start_s": results["started"]["at"] - begin_s,
        "start_core_s": results["started"]["coordinator_s"] - cpu,
        "release_s": float(np.median(release_durations)),
        "round_s": float(np.median(whole)),
        "round_core_s": core,
        "core_us_per_record": 1e6 * core / runs,
        "memory_mib": _memory_mib(),
        "memory_before_mib": memory_before_mib,
    }


def _memory_mib() -> float:
    """Return the peak memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
