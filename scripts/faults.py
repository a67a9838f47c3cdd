"""The long fault suite: deaths at seeded points until there were enough, and a table of what came out.

    scripts/faults [--workers fake|forked|torch] [--points N] [--rng-seed N] [--minutes N]

Worlds from the rng seed on, until N faults came to pass in all or the time is over. A later call goes on behind the
last world of these workers. `fake` workers have no torch; `forked` and `torch` are real ones, which share torch or each
import it, and their policies and checkpoints are compared with the undisturbed ones byte by byte.

The numbers go into docs/evidence/benchmarks/faults.json, world by world, their table into docs/evidence/faults.md.
Exit status 1 when any world did not end as an undisturbed one; its rng seed is printed and makes it again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from benchmarks.machine import processor  # noqa: E402
from marks import between  # noqa: E402
from support import fault_crew, fault_world  # noqa: E402
from support.fault_crew import Crew  # noqa: E402
from support.fault_world import Outcome  # noqa: E402

from esper_ab.analysis.trained_by import result_hash  # noqa: E402
from esper_ab.journal.load import load  # noqa: E402

PAGE, DATA = ROOT / "docs/evidence/faults.md", ROOT / "docs/evidence/benchmarks/faults.json"
FIRST_RNG_SEED = {"fake": 1000, "forked": 2000, "torch": 5000}
Piece = dict[str, Any]  # what one call of this script came to


def crew_of(name: str) -> Crew:
    """Return the crew of that name: workers, and the plan that they carry out."""
    if name == "fake":
        return fault_crew.fake(fault_world.REPLICATES, fault_world.EPISODES)
    return fault_crew.real(name, fault_world.TORCH_REPLICATES, fault_world.TORCH_EPISODES)


def worlds(crew: Crew, folder: Path, rng_seed: int) -> Iterator[Outcome]:
    """Worlds without end, each compared with the undisturbed one."""
    peace_dir = folder / "peace"
    peace = fault_world.live(fault_world.peaceful(), crew, peace_dir, expected_hash="")
    if peace.faults or peace.lives != 1:
        raise SystemExit(f"the undisturbed experiment failed: {peace.problem}")
    expected = result_hash(load(peace_dir).history)
    while True:
        experiment_dir = folder / str(rng_seed)
        yield fault_world.live(fault_world.make_world(rng_seed, crew), crew, experiment_dir, expected, peace_dir)
        shutil.rmtree(experiment_dir)
        rng_seed += 1


def kinds(outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """Of every fault that came to pass: victim, moment, place."""
    for identity, death in outcome.planted:
        yield ("coordinator" if identity.startswith("coordinator") else "worker", death.moment, death.place)
    for blow in outcome.blows:
        victim = "coordinator" if blow.victim == "coordinator" else "worker"
        yield (victim, "whatever it was doing", "from outside")


def piece_of(outcome: Outcome) -> Piece:
    """Return what one world came to, as a piece."""
    signals = Counter(death.how for _, death in outcome.planted)
    signals["SIGKILL"] += len(outcome.blows)
    seed = outcome.world.rng_seed
    return {
        "worlds": 1,
        "faults": outcome.faults,
        "coordinator_lives": outcome.lives,
        "failed": {str(seed): outcome.problem} if outcome.problem else {},
        "signals": dict(signals),
        "longest_outlived_s": outcome.gone_s,
        "left_socket_folders": outcome.left_sockets,
        "rng_seeds": [seed],
        "rows": [
            {"victim": who, "moment": when, "place": where, "faults": n, "as_undisturbed": 0 if outcome.problem else n}
            for (who, when, where), n in Counter(kinds(outcome)).items()
        ],
    }


def together(one: Piece, other: Piece) -> Piece:
    """Two pieces as one."""
    count, right = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for row in (*one["rows"], *other["rows"]):
        key = (row["victim"], row["place"], row["moment"])
        count[key] += row["faults"]
        right[key] += row["as_undisturbed"]
    added = ("worlds", "faults", "coordinator_lives", "left_socket_folders")
    return {
        **{name: one[name] + other[name] for name in added},
        "failed": one["failed"] | other["failed"],
        "signals": dict(sorted((Counter(one["signals"]) + Counter(other["signals"])).items())),
        "longest_outlived_s": max(one["longest_outlived_s"], other["longest_outlived_s"]),
        "rng_seeds": one["rng_seeds"] + other["rng_seeds"],
        "rows": [
            {"victim": key[0], "moment": key[2], "place": key[1], "faults": count[key], "as_undisturbed": right[key]}
            for key in sorted(count)
        ],
    }


def table(found: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = ["| who died | where | when | times | result as undisturbed |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['victim']} | {row['place']} | {row['moment']} | {row['faults']} | {row['as_undisturbed']} |"
        for row in found
    ]
    return "\n".join(lines)


def told(name: str, piece: Piece, machine: dict[str, Any]) -> str:
    """What goes into the page."""
    signals = ", ".join(f"{count} {signal}" for signal, count in piece["signals"].items())
    what = "hash" if name == "fake" else "hash, policies and checkpoints"
    outcome = (
        f"Every one of them ended with the {what} of the undisturbed one, every episode recorded once, no process "
        f"left: the slowest was gone {piece['longest_outlived_s']:.2f} s after its coordinator."
        if not piece["failed"]
        else f"{len(piece['failed'])} did not end as the undisturbed one: rng seeds {', '.join(piece['failed'])}."
    )
    seeds = piece["rng_seeds"]
    said = (
        f"{piece['faults']} faults ({signals}) in {piece['worlds']} experiments, rng seeds {seeds[0]} to "
        f"{seeds[-1]}, which took {piece['coordinator_lives']} coordinators, on {machine['cores']} cores of an "
        f"{machine['processor']}, family {machine['family']}, model {machine['model']}. {outcome}"
    )
    return f"{textwrap.fill(said, 118)}\n\n{table(piece['rows'])}"


def main() -> int:
    """Run, write, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", choices=tuple(FIRST_RNG_SEED), default="fake", help="[fake]")
    parser.add_argument("--points", type=int, default=200, help="faults that are to come to pass in all [200]")
    parser.add_argument("--rng-seed", type=int, help="of the first world [behind the last recorded]")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no world is begun [no limit]")
    asked = parser.parse_args()
    everything = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    piece = everything.get(asked.workers)
    behind = piece["rng_seeds"][-1] + 1 if piece else FIRST_RNG_SEED[asked.workers]
    crew, end = crew_of(asked.workers), time.monotonic() + 60 * asked.minutes
    machine = {**processor(), "cores": os.cpu_count(), "python": platform.python_version()}
    with tempfile.TemporaryDirectory() as folder:
        came = worlds(crew, Path(folder), behind if asked.rng_seed is None else asked.rng_seed)
        while (not piece or piece["faults"] < asked.points) and time.monotonic() < end:
            begun, outcome = time.monotonic(), next(came)
            piece = together(piece, piece_of(outcome)) if piece else piece_of(outcome)
            taken_s = time.monotonic() - begun
            done = f"{piece['faults']:4} of {asked.points}, {taken_s:5.1f} s"
            print(f"{done}, {fault_world.described(outcome)}", flush=True)
            everything[asked.workers] = {"machine": machine, **piece}
            DATA.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    if piece:
        page, mark = PAGE.read_text(encoding="utf-8"), f"injected faults: {asked.workers}"
        said = told(asked.workers, piece, machine)
        PAGE.write_text(between(page, mark, said), encoding="utf-8")
        print(said)
    return 1 if piece and piece["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
