"""The long fault suite: deaths at seeded points until there were enough, and a table of what came out.

    scripts/faults [--points N] [--rng-seed N]     worlds from rng seed N on, until N faults came to pass

The table goes into docs/faults.md and the numbers into docs/benchmarks/faults.json.
Exit status 1 when any world did not end as an undisturbed one; its rng seed is printed and makes it again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from marks import between  # noqa: E402
from support import fault_world  # noqa: E402
from support.fault_world import Outcome  # noqa: E402

from esper_ab.analysis.result_hash import result_hash  # noqa: E402
from esper_ab.journal.load import load  # noqa: E402

PAGE, DATA, MARK = ROOT / "docs" / "faults.md", ROOT / "docs" / "benchmarks" / "faults.json", "injected faults"


def worlds(folder: Path, rng_seed: int, points: int) -> Iterator[Outcome]:
    """Worlds until `points` faults came to pass, each compared with the undisturbed one."""
    peace = fault_world.live(fault_world.peaceful(), folder / "peace", expected_hash="")
    if peace.faults or peace.lives != 1:
        raise SystemExit(f"the undisturbed experiment failed: {peace.problem}")
    expected, faults = result_hash(load(folder / "peace").history), 0
    while faults < points:
        begun = time.monotonic()
        outcome = fault_world.live(fault_world.make_world(rng_seed), folder / str(rng_seed), expected)
        faults, rng_seed = faults + outcome.faults, rng_seed + 1
        taken_s = time.monotonic() - begun
        print(f"{faults:4} of {points}, {taken_s:5.1f} s, {fault_world.described(outcome)}", flush=True)
        yield outcome


def rows(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """One per kind of fault: who, how, where; how often; how often the world it was in came out right."""
    count, right = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for outcome in outcomes:
        for key in kinds(outcome):
            count[key] += 1
            right[key] += not outcome.problem
    order = sorted(count, key=lambda key: (key[0], key[2], key[1]))
    return [
        {"victim": key[0], "moment": key[1], "place": key[2], "faults": count[key], "as_undisturbed": right[key]}
        for key in order
    ]


def kinds(outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """Of every fault that came to pass: victim, moment, place."""
    for identity, death in outcome.planted:
        yield ("coordinator" if identity.startswith("coordinator") else "worker", death.moment, death.place)
    for blow in outcome.blows:
        victim = "coordinator" if blow.victim == "coordinator" else "worker"
        yield (victim, "whatever it was doing", "from outside")


def table(found: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = ["| who died | where | when | times | result as undisturbed |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['victim']} | {row['place']} | {row['moment']} | {row['faults']} | {row['as_undisturbed']} |"
        for row in found
    ]
    return "\n".join(lines)


def summary(outcomes: list[Outcome]) -> dict[str, Any]:
    """The numbers of all worlds together."""
    signals = Counter(death.how for outcome in outcomes for _, death in outcome.planted)
    signals["SIGKILL"] += sum(len(outcome.blows) for outcome in outcomes)
    return {
        "worlds": len(outcomes),
        "faults": sum(outcome.faults for outcome in outcomes),
        "coordinator_lives": sum(outcome.lives for outcome in outcomes),
        "failed": {str(outcome.world.rng_seed): outcome.problem for outcome in outcomes if outcome.problem},
        "signals": dict(sorted(signals.items())),
        "longest_outlived_s": max(outcome.gone_s for outcome in outcomes),
        "left_socket_folders": sum(outcome.left_sockets for outcome in outcomes),
        "rng_seeds": [outcome.world.rng_seed for outcome in outcomes],
    }


def told(numbers: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """What goes into the page."""
    signals = ", ".join(f"{count} {name}" for name, count in numbers["signals"].items())
    outcome = (
        "Every one of them ended with the hash of the undisturbed one, every episode recorded once, no process left: "
        f"the slowest was gone {numbers['longest_outlived_s']:.2f} s after its coordinator."
        if not numbers["failed"]
        else f"{len(numbers['failed'])} did not end as the undisturbed one: rng seeds {', '.join(numbers['failed'])}."
    )
    seeds = numbers["rng_seeds"]
    return (
        f"{numbers['faults']} faults ({signals}) in {numbers['worlds']} experiments, rng seeds {seeds[0]} to "
        f"{seeds[-1]}, which took {numbers['coordinator_lives']} coordinators. {outcome}\n\n{table(found)}"
    )


def main() -> int:
    """Run, write, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200, help="faults that are to come to pass [200]")
    parser.add_argument("--rng-seed", type=int, default=1000, help="of the first world [1000]")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = list(worlds(Path(folder), asked.rng_seed, asked.points))
    numbers, found = summary(outcomes), rows(outcomes)
    PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), MARK, told(numbers, found)), encoding="utf-8")
    machine = {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(json.dumps({"machine": machine, **numbers, "rows": found}, indent=2) + "\n", encoding="utf-8")
    print(told(numbers, found))
    return 1 if numbers["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
