"""Benchmark of report, query and status over journals with very many episode records: time and peak memory."""

import random
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from support.plans import fake_plans

from benchmarks import synthetic
from benchmarks.machine import QUICK_REPEATS, spread
from benchmarks.markdown import table
from esper_ab.contracts.records import EpisodeRecord
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.control import provenance
from esper_ab.journal.events import (
    SCHEMA,
    AnyEvent,
    EpisodeRecorded,
    ExperimentEnded,
    ExperimentStarted,
    MilestoneReleased,
    RunEvaluated,
    RunReady,
    RunStarted,
)
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.plan.plan import Plan

_EPISODES = 1000
_TEMPLATES = 64  # distinct records; every line has its own run, episode and digest
_WRITE_BYTES = 8 << 20
_COMMANDS = {
    "report": ("report",),
    "status": ("status",),
    "query": ("query", "SELECT group_id, count(*) FROM episodes GROUP BY 1"),
    "floor": (),
}
# The cost of reading alone: each line's CRC is checked and the whole line decoded, but nothing is kept.
_FLOOR = """
import sys, zlib, msgspec
from esper_ab.journal.line import Line
decode, n = msgspec.json.Decoder(Line).decode, 0
with open(sys.argv[1], "rb", buffering=1 << 20) as file:
    for line in file:
        zlib.crc32(line[:-19]); decode(line); n += 1
"""
# Runs a command and prints what the command and its children used: wall seconds, core seconds and peak KiB.
_TIMED = """
import json, os, resource, subprocess, sys, time
began = time.perf_counter()
with open(os.devnull, "wb") as nothing:
    code = subprocess.run(sys.argv[1:], stdout=nothing).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"wall_s": time.perf_counter() - began, "core_s": used.ru_utime + used.ru_stime,
                  "largest_kib": used.ru_maxrss, "exit": code}))
"""


# A follower of a run (a coordinator, status --follow) keeps numbers of its episodes: bytes per episode, without those
# of start-up.
_HELD_BYTES_CODE = """
import resource, sys
from pathlib import Path
from esper_ab.journal.reading import read
from esper_ab.journal.fold import fold
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
before = resident()
history = fold(read(Path(sys.argv[1]) / "events.jsonl"), keeps_records=False)
print((resident() - before) / sum(len(run.columns) for run in history.runs.values()))
"""
_HELD_RECORDS = 10_000
_HELD_NAMES = ("without seed events", "with seed events")


def measure(repeats: int) -> dict[str, Any]:
    """Measure 10^5 records of four environments, with and without seed events, and once 10^6 without."""
    is_quick = repeats <= QUICK_REPEATS
    sizes = [(20_000, False, 1)] if is_quick else [(100_000, False, 3), (100_000, True, 3), (1_000_000, False, 1)]
    cells = []
    for records, telemetry, times in sizes:
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
            size = write(Path(folder), records, telemetry=telemetry)
            timings = {name: _timed(Path(folder), command, times) for name, command in _COMMANDS.items()}
        cells.append({"records": records, "telemetry": telemetry, "bytes": size, "repeats": times, **timings})
        print({name: round(timing["wall_s"]["median"], 2) for name, timing in timings.items()}, flush=True)
    return {"cells": cells, "held_bytes": {name: _held_bytes(name == "with seed events") for name in _HELD_NAMES}}


def _held_bytes(telemetry: bool) -> float:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        write(Path(folder), _HELD_RECORDS, telemetry=telemetry)
        process = subprocess.run(
            [sys.executable, "-c", _HELD_BYTES_CODE, folder], capture_output=True, text=True, check=True
        )
    return float(process.stdout)


def write(experiment_dir: Path, records: int, *, telemetry: bool, n_envs: int = 4) -> int:
    """Stream a finished experiment's journal to disk; return its size in bytes."""
    episodes = min(_EPISODES, records // 4)
    plan = fake_plans.plan(
        cores=2,
        seeds=max(1, records // episodes // 2),
        episodes=episodes,
        n_envs=n_envs,
        steps=25,
        slots=("early", "mid", "late"),
        telemetry=telemetry,
        early_stop=False,
    )
    prev_crc = "00000000"
    total = 0
    waiting_lines = []
    stamp = b'"t":"2026-01-31T10:15:00.123+00:00"'
    with (experiment_dir / JOURNAL_NAME).open("wb") as file:
        for n, event in enumerate(_events(plan)):
            body = b'{"n":%d,"prev":"%s",%s,"event":%s' % (n, prev_crc.encode(), stamp, event)
            prev_crc = f"{zlib.crc32(body):08x}"
            waiting_lines.append(body + b',"crc":"' + prev_crc.encode() + b'"}\n')
            total += len(waiting_lines[-1])
            if len(waiting_lines) >= _WRITE_BYTES // 4096:
                file.write(b"".join(waiting_lines))
                waiting_lines.clear()
        file.write(b"".join(waiting_lines))
    return total


def _events(plan: Plan) -> Iterator[bytes]:
    """Yield events as JSON, in the order of a run."""
    draw = random.Random(0)
    encode = msgspec.json.encode

    def lines_of(*events: AnyEvent) -> Iterator[bytes]:
        return map(encode, events)

    yield from lines_of(
        ExperimentStarted(schema=SCHEMA, plan=plan, versions={}, machine=provenance.machine(), code={"sources": ""})
    )
    first_spec = plan.blocks[0].runs[0]
    templates = [_template(first_spec, synthetic.episode(first_spec, 0, draw)) for _ in range(_TEMPLATES)]
    for block in plan.blocks:
        names = tuple(spec.ref.name for spec in block.runs)
        for spec in block.runs:
            yield from lines_of(RunStarted(run=spec.ref, worker="w00", incarnation=1))
            yield from lines_of(RunReady(run=spec.ref, warm_up_s=0.4))
        refs = [encode(spec.ref) for spec in block.runs]
        for episode in range(block.runs[0].episodes):
            for ref in refs:
                begin, middle, end = templates[draw.randrange(_TEMPLATES)]
                digest = b"%064x" % draw.getrandbits(256)
                yield b"%s%s%s%d%s%s%s" % (begin, ref, b',"episode":', episode, middle, digest, end)
            yield from lines_of(MilestoneReleased(replicate=block.replicate, milestone=episode + 1, runs=names))
        for spec in block.runs:
            yield from lines_of(RunEvaluated(record=synthetic.evaluation(spec, draw)))
        yield from lines_of(
            MilestoneReleased(replicate=block.replicate, milestone=block.runs[0].episodes + 1, runs=names)
        )
    yield from lines_of(ExperimentEnded(status="finished", detail=""))


def _template(spec: RunSpec, record: EpisodeRecord) -> tuple[bytes, bytes, bytes]:
    """Return the JSON of an episode event without run, episode and digest."""
    whole = msgspec.json.encode(EpisodeRecorded(record=record))
    ref = msgspec.json.encode(spec.ref)
    digest = record.digest.encode()
    begin, _, tail = whole.partition(ref)
    _, _, tail = tail.partition(b',"episode":0')
    middle, _, end = tail.partition(digest)
    return begin, middle, end


def _timed(experiment_dir: Path, command_words: tuple[str, ...], repeats: int) -> dict[str, Any]:
    name, *arguments = command_words or ("",)
    command = (
        [sys.executable, "-m", "esper_ab.commands.cli", name, str(experiment_dir), *arguments]
        if command_words
        else [sys.executable, "-c", _FLOOR, str(experiment_dir / JOURNAL_NAME)]
    )
    timings = []
    for _ in range(repeats):
        process = subprocess.run([sys.executable, "-c", _TIMED, *command], capture_output=True, text=True, check=True)
        timings.append(msgspec.json.decode(process.stdout.splitlines()[-1]))
        if timings[-1]["exit"]:
            raise RuntimeError(f"{name} ended with exit status {timings[-1]['exit']}: {process.stderr}")
        time.sleep(0.1)
    return {
        "wall_s": spread([timing["wall_s"] for timing in timings]),
        "core_s": spread([timing["core_s"] for timing in timings]),
        "largest_mib": max(timing["largest_kib"] for timing in timings) / 1024,
    }


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's tables."""
    rows = [
        [
            f"{cell['records']:,}",
            "yes" if cell["telemetry"] else "no",
            f"{cell['bytes'] / 1e9:.2f}",
            *(
                f"{cell[name]['wall_s']['median']:.1f} s, {cell[name]['core_s']['median']:.1f} s core, "
                f"{cell[name]['largest_mib']:.0f} MiB"
                for name in _COMMANDS
            ),
        ]
        for cell in record["cells"]
    ]
    commands = " | ".join(f"`esper-ab {name}`" for name in list(_COMMANDS)[:-1])
    header = f"records | seed events | journal, GB | {commands} | CRC and decoding of every line"
    return [
        "Time on the wall and of all processes together, and the largest resident set of a process. Episodes of four "
        "environments in runs of 1,000, two groups; generated, every line with its own CRC. The last column is what it "
        "takes to check and decode every line and keep nothing. Of 10^6 records one measurement, of fewer the median "
        "of three.",
        "",
        *table(header, rows),
        "",
        "Who follows a run, as a coordinator and `esper-ab status --follow` do, has in memory of each record "
        + ", ".join(f"{held_bytes / 1024:.1f} KiB {name}" for name, held_bytes in record["held_bytes"].items())
        + ".",
    ]
