"""Part 4: two equal groups have equal records on a GPU, also after a worker and then the coordinator were killed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import Any

from benchmarks.markdown import table

from esper_ab.contracts.errors import UsageError
from esper_ab.journal.events import WorkerStarted
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from signoff.machine import SHARED, Machine, digests

TITLE = "Equal groups, killed and resumed"
BUDGET_S = 75
_FLAGS = {"--groups": "a=shaped,b=shaped", "--seeds": "1", "--eval-episodes": "4", **SHARED}
_SIZES = {"--episodes": "5", "--steps": "5"}
_SMALL = {"--task": "synthetic", "--episodes": "6", "--steps": "4", "--n-envs": "2", "--eval-episodes": "2"}
_POLL_S = 0.05


def measure(machine: Machine) -> dict[str, Any]:
    """Run the experiment once in one piece and once with both faults; return the hashes of both."""
    flags = {**_FLAGS, **(_SIZES if machine.real else _SMALL)}
    whole = machine.launch("whole", flags)
    killed_run = _killed(machine, machine.launch_command("killed", flags))
    process = machine.run(sys.executable, "-m", "esper_ab.commands.cli", "resume", machine.folder / "killed")
    if process.returncode:
        raise RuntimeError(f"resume ended with exit status {process.returncode}: {process.stderr[-800:]}")
    resumed_history = load(machine.folder / "killed").history
    return {
        **killed_run,
        "incidents": [incident.category for incident in resumed_history.incidents],
        "results": {name: machine.result(name) for name in ("whole", "killed")},
        "digests": {
            f"{name} {run}": digests(history, run)
            for name, history in (("whole", whole), ("killed", resumed_history))
            for run in ("a/0", "b/0")
        },
    }


def _killed(machine: Machine, command: list[str]) -> dict[str, bool]:
    """Kill a worker after its first episode, and the coordinator after the first episode of the worker's successor."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as coordinator:
        first_worker = _wait(machine, coordinator, episodes=1, incarnation=1)
        if first_worker is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first_worker, signal.SIGKILL)
        second_worker = _wait(machine, coordinator, episodes=3, incarnation=2)
        coordinator.kill()
    ended_by_us = coordinator.returncode == -signal.SIGKILL
    return {"worker_killed": first_worker is not None, "coordinator_killed": second_worker is not None and ended_by_us}


def _wait(machine: Machine, coordinator: subprocess.Popen[bytes], episodes: int, incarnation: int) -> int | None:
    """Wait for so many records of one run and a worker's start.

    Return the worker's process id, None if all has ended.
    """
    journal = machine.folder / "killed" / JOURNAL_NAME
    while coordinator.poll() is None:
        time.sleep(_POLL_S)
        if not journal.exists():
            continue
        with contextlib.suppress(UsageError):  # no event yet
            history = load(journal.parent).history
            workers = [
                event.pid
                for event in read(journal)
                if isinstance(event, WorkerStarted) and event.incarnation == incarnation
            ]
            if workers and min(len(run.columns) for run in history.runs.values()) >= episodes:
                return workers[0]
    return None


def problems(findings: dict[str, Any]) -> list[str]:
    """A fault that did not happen, and records or results that differ."""
    living_victims = [victim for victim in ("worker", "coordinator") if not findings[f"{victim}_killed"]]
    lines = [f"the {victim} could not be killed: the experiment had ended" for victim in living_victims]
    if "worker_death" not in findings["incidents"] or "restart" not in findings["incidents"]:
        lines.append(f"no worker died and was started again; incidents: {', '.join(findings['incidents']) or 'none'}")
    first_run, *other_runs = findings["digests"].items()
    lines += [
        f"the records of {name} are not those of {first_run[0]}"
        for name, digests in other_runs
        if digests != first_run[1]
    ]
    if findings["results"]["whole"] != findings["results"]["killed"]:
        lines.append("the result after both faults is not that of the undisturbed experiment")
    return lines


def render(findings: dict[str, Any]) -> list[str]:
    """Return the hashes."""
    rows = [(name, len(digests), f"`{digests[-1][:16]}`") for name, digests in findings["digests"].items()]
    return [
        "One experiment ran undisturbed; in the other a worker was killed, then the coordinator, and it was resumed. "
        f"Results: `{findings['results']['whole'][:16]}` and `{findings['results']['killed'][:16]}`.",
        "",
        *table("experiment and run | records | hash of its evaluation", rows),
    ]
