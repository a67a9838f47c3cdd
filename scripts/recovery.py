"""How long a killed worker takes to be back, and what it costs that nothing is lost. Real training, small, on digits.

    scripts/recovery [--kills N]    table into docs/evidence/faults.md, numbers into benchmarks/recovery.json there

Workers are killed with SIGKILL in the middle of episodes. The time of the kill is this script's, the others are those
of the journal's lines, by the same clock. Costs are of the same records and states, written again to the same disk.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from marks import between

from esper_ab.analysis.trained_by import result_hash
from esper_ab.health.processor import name_of_processor
from esper_ab.journal.events import EpisodeRecorded, MilestoneReleased
from esper_ab.journal.file import JOURNAL_NAME, Journal, read
from esper_ab.journal.load import load

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA, MARK = ROOT / "docs/evidence/faults.md", ROOT / "docs/evidence/benchmarks/recovery.json", "recovery"
EPISODES = 12
EXPERIMENT = (
    "--groups", "a=shaped,b=simplified", "--task", "digits", "--seeds", "1", "--episodes", str(EPISODES),
    "--n-envs", "2", "--eval-episodes", "2", "--rng-seed", "3", "--devices", "cpu:0,cpu:1",
)  # fmt: skip
WRITES = 50
_POLL_S = 0.01
_INTO_THE_EPISODE = 0.5  # where in an episode the worker is killed, as a share of the median so far

Line = dict[str, Any]  # of the journal, with "t" in seconds


def run(folder: Path, name: str, kills: int) -> tuple[Path, list[Line]]:
    """One experiment, its workers killed `kills` times; the kills as lines {"t", "run", "milestone"}."""
    command = [
        sys.executable, "-m", "esper_ab.launch", *EXPERIMENT, "--output-dir", str(folder), "--name", name, "--json",
    ]  # fmt: skip
    struck: list[Line] = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            time.sleep(_POLL_S)
            if len(struck) < kills:
                struck += _kill(lines(folder / name / JOURNAL_NAME), len(struck))
        if process.returncode:
            raise SystemExit(f"{name} ended with exit status {process.returncode}")
    return folder / name, struck


def lines(journal: Path) -> list[Line]:
    """Complete lines so far."""
    with suppress(FileNotFoundError):
        whole = [json.loads(line) for line in journal.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
        return [line["event"] | {"t": datetime.fromisoformat(line["t"]).timestamp()} for line in whole]
    return []


def _kill(found: list[Line], before: int) -> list[Line]:
    """Kill a worker in the middle of its next due episode; both take turns."""
    milestone = 2 + before  # one kill per episode, from the second on
    group = "ab"[before % 2]
    released = [line["t"] for line in found if line["kind"] == "released" and line["milestone"] == milestone - 1]
    if not released or f"{group}/0" not in {name for line in found[-1:] for name in line.get("runs", ())}:
        return []
    length = statistics.median(line["record"]["timing"]["total_s"] for line in found if line["kind"] == "episode")
    time.sleep(length * _INTO_THE_EPISODE)
    lane = next(
        line["run"]["device"] for line in found if line["kind"] == "run_started" and line["run"]["group_id"] == group
    )
    pid = [line["pid"] for line in found if line["kind"] == "worker_started" and line["device"] == lane][-1]
    os.kill(pid, signal.SIGKILL)
    return [{"t": time.time(), "run": f"{group}/0", "lane": lane, "milestone": milestone}]


def stages(found: list[Line], kill: Line) -> dict[str, float]:
    """Seconds from the kill to what followed from it."""

    def first(matches: Callable[[Line], bool]) -> float:
        return next(line["t"] for line in found if line["t"] >= kill["t"] and matches(line)) - kill["t"]

    def is_record(line: Line) -> bool:
        return line["kind"] == "episode" and (line["record"]["run"]["name"], line["record"]["episode"]) == (
            kill["run"], kill["milestone"] - 1,
        )  # fmt: skip

    return {
        "death noticed": first(lambda line: line["kind"] == "incident" and line["category"] == "worker_death"),
        "new worker greets": first(lambda line: line["kind"] == "worker_started" and line["device"] == kill["lane"]),
        "back at the barrier": first(lambda line: line["kind"] == "run_ready" and line["run"]["name"] == kill["run"]),
        "interrupted episode recorded": first(is_record),
    }


def journal_s(experiment_dir: Path, folder: Path) -> list[float]:
    """Seconds to append a block's episode records and their release, and to sync, per episode."""
    events = list(read(experiment_dir / JOURNAL_NAME))
    records = [event for event in events if isinstance(event, EpisodeRecorded)]
    release = next(event for event in events if isinstance(event, MilestoneReleased))
    folder.mkdir()
    journal, taken = Journal(folder), []
    for i in range(WRITES):
        begun = time.perf_counter()
        for record in records[2 * i % len(records) :][:2]:
            journal.append(record)
        journal.append(release)
        journal.commit()
        taken.append((time.perf_counter() - begun) / 2)
    journal.close()
    return taken


def checkpoint_s(experiment_dir: Path, folder: Path) -> tuple[list[float], int]:
    """Seconds to make bytes of a run's state and put them on disk; their number."""
    from workers.storage import durable, state_bytes

    run = next(iter(load(experiment_dir).history.runs.values()))
    data = (experiment_dir / run.checkpoints[-1].file).read_bytes()
    state, taken = state_bytes.from_bytes(data), []
    for milestone in range(1, WRITES + 1):
        begun = time.perf_counter()
        durable.store(folder, run.ref, milestone, state_bytes.to_bytes(state))
        taken.append(time.perf_counter() - begun)
    return taken, len(data)


def spread(values: list[float]) -> dict[str, float]:
    """Median and range."""
    return {"n": len(values), "median": statistics.median(values), "least": min(values), "most": max(values)}


def row(what: str, found: dict[str, float], episode: float | None = None) -> str:
    """Of the table; seconds, or milliseconds with a share of the episode."""
    if episode is None:
        return f"| {what} | {found['median']:.2f} s | {found['least']:.2f} to {found['most']:.2f} s | {found['n']} | |"
    share = f"{100 * found['median'] / episode:.2f} %"
    low, high = f"{1000 * found['least']:.1f}", f"{1000 * found['most']:.1f}"
    return f"| {what} | {1000 * found['median']:.1f} ms | {low} to {high} ms | {found['n']} | {share} |"


def told(numbers: dict[str, Any]) -> str:
    """What goes into the page."""
    episode, size = numbers["episode_s"]["median"], f"{numbers['checkpoint_bytes'] / 1024:.0f} KiB"
    same = "the same result hash as" if numbers["same_result"] else "ANOTHER result hash than"
    table = [
        "| | median | range | of | share of an episode |",
        "|---|---|---|---|---|",
        *(row(f"kill to: {name}", found) for name, found in numbers["stages_s"].items()),
        row("a training episode", numbers["episode_s"]),
        row("journal: append and sync, per episode", numbers["journal_s"], episode),
        row(f"checkpoint of {size}, per episode", numbers["checkpoint_s"], episode),
    ]
    return (
        f"`esper-ab launch {' '.join(EXPERIMENT)}` on {numbers['cores']} cores with a load average of "
        f"{numbers['load_average']:.1f}. {numbers['kills']} times a worker was killed in the middle of an episode; the "
        f"experiment came to {same} undisturbed.\n\n" + "\n".join(table)
    )


def measure(folder: Path, kills: int) -> dict[str, Any]:
    """Everything in numbers, seconds."""
    calm, _ = run(folder, "calm", 0)
    stormy, struck = run(folder, "stormy", kills)
    found = lines(stormy / JOURNAL_NAME)
    each = [stages(found, kill) for kill in struck]
    histories = load(calm).history, load(stormy).history
    checkpoint, size = checkpoint_s(calm, folder / "checkpoint")
    return {
        "experiment": EXPERIMENT,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[1],  # of five minutes, all processes of the machine
        "processor": name_of_processor(),
        "kills": len(struck),
        "same_result": result_hash(histories[0]) == result_hash(histories[1]),
        "stages_s": {name: spread([one[name] for one in each]) for name in each[0]},
        "episode_s": spread([record.timing.total_s for one in histories[0].runs.values() for record in one.curve()]),
        "journal_s": spread(journal_s(calm, folder / "journal")),
        "checkpoint_s": spread(checkpoint),
        "checkpoint_bytes": size,
    }


def main() -> int:
    """Measure, write, tell; exit status 1 when the result was another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=8, help=f"at most {EPISODES - 1}; one per episode [8]")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        numbers = measure(Path(folder), asked.kills)
    PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), MARK, told(numbers)), encoding="utf-8")
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    print(told(numbers))
    return 0 if numbers["same_result"] else 1


if __name__ == "__main__":
    sys.exit(main())
