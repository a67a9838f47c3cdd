"""Part 2: the ordered command on the GPU: two groups, a policy each, an experiment with a verdict."""

import time
from typing import Any

from benchmarks.markdown import table

from signoff.machine import Machine

TITLE = "The ordered command"
BUDGET_S = 85
_FLAGS = {"--groups": "shaped,simplified"}  # a machine with GPUs trains on them by default
_SIZES = {"--seeds": "1", "--eval-episodes": "4"}  # otherwise as by default
_SMALL = {
    "--task": "synthetic",
    "--episodes": "1",
    "--steps": "4",
    "--n-envs": "2",
    "--seeds": "1",
    "--eval-episodes": "2",
}


def measure(machine: Machine) -> dict[str, Any]:
    """Run the experiment; return where its environments trained, and how long it took."""
    flags = {**_FLAGS, **(_SIZES if machine.real else _SMALL)}
    start = time.monotonic()
    history = machine.launch("ordered", flags)
    seconds = time.monotonic() - start
    runs = []
    for name, run in history.runs.items():
        records = [run.episodes[index] for index in run.episodes]
        runs.append(
            {
                "run": name,
                "device": run.ref.device,
                "envs_on": sorted({env.device for record in records for env in record.envs}),
                "episode_s": [round(record.timing.total_s, 3) for record in records],
                "evaluated": run.evaluation is not None,
            }
        )
    command = "python -m esper_ab.launch " + " ".join(f"{flag} {value}" for flag, value in flags.items())
    return {"command": command, "seconds": seconds, "result": machine.result("ordered"), "runs": runs}


def problems(findings: dict[str, Any]) -> list[str]:
    """A run that was not evaluated, or trained elsewhere than on a GPU."""
    lines = [f"{run['run']} was not evaluated" for run in findings["runs"] if not run["evaluated"]]
    if not findings["runs"]:
        lines.append("nothing was trained")
    for run in findings["runs"]:
        other_devices = [device for device in run["envs_on"] if not device.startswith("cuda:")]
        if other_devices or not run["envs_on"]:
            lines.append(f"{run['run']} trained on {', '.join(other_devices) or 'nothing'}, not on a GPU")
    return lines


def render(findings: dict[str, Any]) -> list[str]:
    """Return a table of the runs."""
    rows = [
        (run["run"], run["device"], ", ".join(run["envs_on"]), ", ".join(f"{s:.2f}" for s in run["episode_s"]))
        for run in findings["runs"]
    ]
    return [
        f"`{findings['command']}` took {findings['seconds']:.1f} s with the start of its processes.",
        "",
        *table("run | worker's device | environments on | seconds of its training episodes", rows),
    ]
