"""Benchmark of the coordinator: last report of a barrier to its release, and the number of blocks it can handle.

Beside it a loop that does the least a coordinator must: receive, decode, journal, sync once per poll, release.
"""

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import zmq
from support.plans import fake_plans

from benchmarks.fake_fleet import Fleet
from benchmarks.machine import QUICK_REPEATS, spread
from benchmarks.markdown import ranged, table
from esper_ab.contracts.codec import encode
from esper_ab.contracts.messages import Assign, Hello, Release, Stop, WorkerMessage
from esper_ab.contracts.worker_order import Lane, RunSpec, WorkerOrder
from esper_ab.control import experiment_run
from esper_ab.control.rules.runs import event_of
from esper_ab.journal.file import Journal
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.plan.plan import Plan

_decode = msgspec.msgpack.Decoder(WorkerMessage).decode  # in one step, without the limits of contracts/codec.py
_SYNCS = 50
_END_S = 10.0  # for a process of fake workers to store what it measured
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def measure(repeats: int) -> dict[str, Any]:
    """Measure one block of 2, 6 and 64 runs, and 32, 128 and 512 blocks of two."""
    episodes = 10 if repeats <= QUICK_REPEATS else 40
    sizes = [(1, 2), (1, 6), (1, 64), (32, 2), (128, 2), (512, 2)]
    cells = []
    for n_envs in (4, 16):
        for blocks, runs in sizes:
            result = cell(blocks, runs, n_envs, episodes)
            cells.append(result)
            print(_line(result), flush=True)
    return {"sync_ms": spread(_sync_ms()), "cells": cells}


def cell(blocks: int, runs: int, n_envs: int, episodes: int) -> dict[str, Any]:
    """Measure one experiment of fake workers, from its first episode on."""
    plan = plan_of(blocks, runs, n_envs, episodes)
    rounds, size = _rounds(plan, blocks * runs, lambda folder, fleet: experiment_run.run(plan, folder, fleet, ()))
    least_rounds, _ = _rounds(plan, blocks * runs, lambda folder, fleet: _minimal(plan, folder, fleet))
    block_by_run = {spec.ref.name: block.replicate for block in plan.blocks for spec in block.runs}
    barrier_waits = [wait for timing in rounds for wait in _barrier_waits(timing, block_by_run)]
    whole = [max(timing["released"].values()) - min(timing["sent"].values()) for timing in rounds]
    core = [timing["coordinator_s"] for timing in rounds]
    least_core = [timing["coordinator_s"] for timing in least_rounds]
    return {
        "blocks": blocks,
        "runs": runs,
        "n_envs": n_envs,
        "rounds": len(rounds),
        "bytes_per_record": round(size / (blocks * runs * episodes)),
        "wait_ms": _quantiles([1e3 * wait for wait in barrier_waits]),
        "round_ms": spread([1e3 * seconds for seconds in whole]),
        "coordinator_core_ms": spread([1e3 * seconds for seconds in core]),
        "core_us_per_record": 1e6 * float(np.median(core)) / (blocks * runs),
        "over_minimal": float(np.median(core) / np.median(least_core)),
        "records_per_s": blocks * runs / float(np.median(whole)),
        "share_of_a_second": float(np.median(barrier_waits)),
    }


def _rounds(plan: Plan, workers: int, work: Callable[[Path, Fleet], None]) -> tuple[list[dict[str, Any]], int]:
    """Carry out a plan; return its rounds of episodes from the second on, and the size of the journal."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        fleet = Fleet(pools=min(2, workers), workers=workers)
        work(Path(folder), fleet)
        return fleet.results()["rounds"][2:-1], (Path(folder) / JOURNAL_NAME).stat().st_size


def _minimal(plan: Plan, folder: Path, fleet: Fleet) -> None:
    """Carry out a plan with the least work: only types are checked, and nothing but the reports is journalled."""
    journal = Journal(folder)
    socket = zmq.Context.instance().socket(zmq.ROUTER)
    socket.bind(endpoint := f"ipc://{folder}/minimal")
    specs = {}
    workers = []
    for lane, spec in zip(plan.lanes, [spec for block in plan.blocks for spec in block.runs], strict=True):
        order = WorkerOrder(
            endpoint=endpoint,
            worker=f"w{len(specs)}",
            incarnation=1,
            lane=lane,
            log_file="",
            arithmetic=plan.experiment.arithmetic,
            experiment_dir=str(folder),
        )
        specs[order.identity.encode()] = spec
        workers.append(fleet.start(order))
    arrivals_by_barrier: dict[tuple[int, int], list[bytes]] = defaultdict(list)  # by block and milestone
    milestones = dict.fromkeys(specs, 0)
    last_milestone = plan.experiment.episodes + 2
    while min(milestones.values()) < last_milestone:
        socket.poll()
        due_barriers: list[tuple[int, list[bytes]]] = []
        with suppress(zmq.Again):
            while True:
                identity, data = socket.recv_multipart(zmq.NOBLOCK)
                message = _decode(data)
                spec = specs[identity]
                if isinstance(message, Hello):
                    socket.send_multipart([identity, encode(Assign(spec=spec))])
                    continue
                journal.append(event_of(message))
                arrivals = arrivals_by_barrier[spec.ref.replicate, milestones[identity]]
                arrivals.append(identity)
                if len(arrivals) == len(plan.experiment.groups):
                    due_barriers.append((milestones[identity], arrivals))
                milestones[identity] += 1
        if due_barriers:
            journal.commit()
        for milestone, arrivals in due_barriers:
            for identity in arrivals:
                release = Release(run_name=specs[identity].ref.name, milestone=milestone)
                socket.send_multipart([identity, encode(release)])
    for identity, worker in zip(specs, workers, strict=True):
        socket.send_multipart([identity, encode(Stop(reason="done"))])
        worker.join(_END_S)
    journal.close()
    socket.close()


def plan_of(blocks: int, runs: int, n_envs: int, episodes: int) -> Plan:
    """Return a plan with each run on its own lane, so that all blocks are in progress at once."""
    groups = tuple(f"{_LETTERS[i % 26]}{i}" for i in range(runs))
    plan = fake_plans.plan(
        cores=runs, groups=groups, seeds=blocks, episodes=episodes, n_envs=n_envs, steps=25, early_stop=False
    )
    specs = [spec for block in plan.blocks for spec in block.runs]
    lanes = {spec.ref.name: Lane(name=f"cpu:{i}", devices=(f"cpu:{i}",), uuids=("",)) for i, spec in enumerate(specs)}
    spread = tuple(
        msgspec.structs.replace(block, runs=tuple(_on_lane(spec, lanes[spec.ref.name]) for spec in block.runs))
        for block in plan.blocks
    )
    return msgspec.structs.replace(plan, lanes=tuple(lanes.values()), blocks=spread)


def _on_lane(spec: RunSpec, lane: Lane) -> RunSpec:
    ref = msgspec.structs.replace(spec.ref, device=lane.name)
    return msgspec.structs.replace(spec, ref=ref, env_devices=lane.devices * spec.n_envs)


def _barrier_waits(timing: dict[str, Any], block_by_run: dict[str, int]) -> list[float]:
    """Return seconds from the last report of each block to its last release."""
    sent_times: dict[int, float] = {}
    release_times: dict[int, float] = {}
    for run, block in block_by_run.items():
        sent_times[block] = max(sent_times.get(block, 0.0), timing["sent"][run])
        release_times[block] = max(release_times.get(block, 0.0), timing["released"][run])
    return [release_times[block] - sent_times[block] for block in sent_times]


def _quantiles(values: list[float]) -> dict[str, float]:
    quantiles = np.percentile(np.asarray(values), [50, 90, 99, 100]).tolist()
    return dict(zip(("median", "p90", "p99", "max"), quantiles, strict=True))


def _sync_ms() -> list[float]:
    """Return milliseconds of one fdatasync after appending 8 KiB, on the disk of the working directory."""
    durations_ms = []
    with tempfile.NamedTemporaryFile(dir=Path.cwd()) as file:
        for _ in range(_SYNCS):
            os.write(file.fileno(), bytes(8192))
            begin_s = time.perf_counter()
            os.fdatasync(file.fileno())
            durations_ms.append(1e3 * (time.perf_counter() - begin_s))
    return durations_ms


def _line(result: dict[str, Any]) -> str:
    return (
        f"{result['blocks']} x {result['runs']}, n_envs {result['n_envs']}: "
        f"round {result['round_ms']['median']:.1f} ms, "
        f"wait {result['wait_ms']['median']:.2f} ms, core {result['core_us_per_record']:.0f} us per record, "
        f"{result['over_minimal']:.2f} times the minimal loop"
    )


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's table."""
    rows = [
        [
            f"{cell['blocks']} x {cell['runs']}",
            str(cell["n_envs"]),
            f"{cell['bytes_per_record']:,}",
            f"{cell['wait_ms']['median']:.1f}, {cell['wait_ms']['p90']:.1f}, {cell['wait_ms']['p99']:.1f}",
            ranged(cell["round_ms"], 1),
            f"{cell['coordinator_core_ms']['median']:.1f}",
            f"{cell['core_us_per_record']:.0f}",
            f"{cell['records_per_s']:,.0f}",
            f"{100 * cell['share_of_a_second']:.2f} %",
        ]
        for cell in record["cells"]
    ]
    header = (
        "blocks x runs | n_envs | bytes of a line | last report to release, ms: median, p90, p99 "
        "| first report to last release, ms | coordinator on its cores, ms | µs per record | records per s "
        "| share of an episode of 1 s"
    )
    return [
        "All reports of a round are sent at once by fake workers in two processes, over the real wire, into the real "
        "hub, machine and journal with its sync; records with seed events, as large as real ones. Times are those that "
        "the workers see. The coordinator's time on its cores counts all its threads and nobody else's work. One "
        f"fdatasync after 8 KiB took {ranged(record['sync_ms'])} ms here.",
        "",
        *table(header, rows),
    ]
