"""Mutation testing: insert one small bug at a time into the pure rooms and see whether a unit test detects it.

    scripts/mutants [ROOM ...] [--sample N]    try the stored mutants, or the first N per room; list survivors
    scripts/mutants [ROOM ...] --record        also write the scores to tests/golden/mutants/scores.toml
    scripts/mutants [ROOM ...] --draw          draw new lists of 200 mutants per room: a new baseline
    scripts/mutants [ROOM ...] --refill        replace the mutants whose code is gone by new ones of the same functions

A room's list is in tests/golden/mutants, one mutant per line, in random order. Each is tried in one process against
the room's unit tests that enter the function (for statistics, verdict and design, also tests/statistics; for settings,
also tests/refusals, which has its refusals). The tests of the mutant's module run first, and Hypothesis examples are
fixed. The detecting test is recorded and tried first next time. The score is the share of killed mutants among those
that still exist. A mutant that changes nothing, which no test can detect, counts as a survivor.
"""

import argparse
import importlib
import os
import subprocess
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from mutation.child import in_child
from mutation.drawn import (
    GONE,
    KILLED,
    LISTS,
    NOT_REACHED,
    ROOT,
    SURVIVED,
    Located,
    Mutant,
    draw,
    locate,
    read,
    refilled,
    write,
)
from mutation.session import Room, Seen, run_late, run_tests

ROOMS = {
    "barrier": "esper_ab/control/rules/barrier.py",
    "control-rules": "esper_ab/control/rules",
    "verdict": "esper_ab/verdict",
    "design": "esper_ab/design",
    "stats": "esper_ab/stats",
    "settings": "esper_ab/settings",
    "growth-rules": "workers/kinds/growth/rules",
    "journal": "esper_ab/journal",
    "ppo": "workers/ppo",
}
SCORES = LISTS / "scores.toml"
_SIZE = 200
_RNG_SEED = 38
# polars, because its import ends a child whose memory is limited.
_LOADED_BEFORE = ("numpy", "scipy.special", "scipy.stats", "msgspec", "hypothesis.strategies", "polars")
_NEEDS_TORCH = {"growth-rules", "ppo"}
_STATISTICAL = {"verdict", "design", "stats"}
_FOREVER_S = 100_000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"one of {', '.join(ROOMS)}; default: all")
    parser.add_argument("--sample", type=int, default=_SIZE, metavar="N", help="only the first N of each room's list")
    parser.add_argument("--draw", action="store_true", help="draw new lists")
    parser.add_argument("--refill", action="store_true", help="replace the mutants whose code is gone")
    parser.add_argument("--record", action="store_true", help=f"write the scores to {SCORES.relative_to(ROOT)}")
    args = parser.parse_args()
    if unknown_rooms := set(args.rooms) - set(ROOMS):
        parser.error(f"unknown room {', '.join(sorted(unknown_rooms))}; there are {', '.join(ROOMS)}")
    for room in args.rooms or ROOMS:
        if args.draw:
            write(LISTS / f"{room}.json", draw(ROOT, ROOMS[room], _SIZE, _RNG_SEED))
        elif args.refill:
            file = LISTS / f"{room}.json"
            write(file, refilled(ROOT, ROOMS[room], read(file), _RNG_SEED))
        else:
            tried_mutants = try_room(room, args.sample)
            if args.record:
                record(room, tried_mutants)


def try_room(room: str, sample: int) -> list[Mutant]:
    file = LISTS / f"{room}.json"
    mutants = read(file)
    sampled_mutants = mutants[:sample]
    begin_s = time.monotonic()
    mutant_places = [(mutant, locate(ROOT, mutant)) for mutant in sampled_mutants]
    for mutant, place in mutant_places:
        mutant.result = "" if place else GONE
    for name in (*_LOADED_BEFORE, *(("torch",) if room in _NEEDS_TORCH else ())):
        importlib.import_module(name)
    with os.fdopen(os.dup(1), "w", buffering=1) as terminal:

        def report(mutant: Mutant) -> None:
            write(file, mutants)
            print(f"{mutant.result:11} {_description(mutant)}  {mutant.by}", file=terminal)

        work = _Work(
            [(mutant, place) for mutant, place in mutant_places if place],
            _test_files(room, mutant_places),
            report,
            lambda text: print(text, file=terminal),
        )
        work.run()
    write(file, mutants)
    if untried_count := sum(not mutant.result for mutant in sampled_mutants):
        raise SystemExit(f"{room}: {untried_count} mutants were not tried: the tests ended early")
    print(f"{room}: {summary(sampled_mutants)}; {time.monotonic() - begin_s:.0f} s")
    for mutant, place in mutant_places:
        if place and mutant.result in (SURVIVED, NOT_REACHED):
            print(f"  {mutant.result}: {place.path.relative_to(ROOT)}:{place.line}: {_description(mutant)}")
    return sampled_mutants


class _Work:
    """The mutants of a room: first those that can be tried in the child that collects the tests, then the rest."""

    def __init__(self, mutant_places: list[tuple[Mutant, Located]], files: list[Path], tell: Any, say: Any) -> None:
        self._places = mutant_places
        self._files = files
        self._tell = tell
        self._say = say

    def run(self) -> None:
        answer = in_child(self._collected, _FOREVER_S)
        seen_tests = msgspec.convert(answer["seen"], dict[str, Seen])
        for (mutant, _), (result, killer) in zip(self._places, answer["results"], strict=True):
            mutant.result = result
            mutant.by = killer
        for mutant, place in self._places:
            if not mutant.result:
                run_late(mutant, place, self._files, seen_tests)
                self._tell(mutant)

    def _collected(self) -> dict[str, Any]:
        room = Room(self._places, self._tell, self._say)
        run_tests(self._files, room)
        results = [(mutant.result, mutant.by) for mutant, _ in self._places]
        return {"seen": msgspec.to_builtins(room.seen), "results": results}


def _test_files(room: str, mutant_places: list[tuple[Mutant, Located | None]]) -> list[Path]:
    """Return the unit test files of the room, and of the folders to which its mutants have moved."""
    folder_of_room = ROOT / ROOMS[room]
    folders = {
        folder_of_room.parent if folder_of_room.suffix else folder_of_room,
        *(place.path.parent for _, place in mutant_places if place),
    }
    files = {file for folder in folders for file in (ROOT / "tests/unit" / folder.relative_to(ROOT)).rglob("test_*.py")}
    if room in _STATISTICAL:
        files |= set((ROOT / "tests/statistics").glob("test_*.py"))
    if room == "settings":
        files |= set((ROOT / "tests/refusals").glob("test_*.py"))
    return sorted(files)


def summary(mutants: list[Mutant]) -> str:
    count = Counter(mutant.result for mutant in mutants)
    return (
        f"{score(mutants):.1f} % of {len(mutants) - count[GONE]} killed; {count[SURVIVED]} survived, "
        f"{count[NOT_REACHED]} not reached, {count[GONE]} gone"
    )


def score(mutants: list[Mutant]) -> float:
    located_mutants = [mutant for mutant in mutants if mutant.result != GONE]
    return 100 * sum(mutant.result == KILLED for mutant in located_mutants) / max(len(located_mutants), 1)


def record(room: str, mutants: list[Mutant]) -> None:
    scores = tomllib.loads(SCORES.read_text(encoding="utf-8")) if SCORES.exists() else {}
    count = Counter(mutant.result for mutant in mutants)
    head = ("git", "rev-parse", "--short=8", "HEAD")
    commit = subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    scores[room] = {"commit": commit, "tried": len(mutants), "score": round(score(mutants), 1)} | {
        result.replace(" ", "_"): count[result] for result in (KILLED, SURVIVED, NOT_REACHED, GONE)
    }
    sections = [_section(name, scores[name]) for name in ROOMS if name in scores]
    SCORES.write_text("\n".join(("# Written by scripts/mutants --record.\n", *sections)), encoding="utf-8")


def _section(name: str, values: dict[str, Any]) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in values.items())


def _description(mutant: Mutant) -> str:
    place = f"{mutant.module.rpartition('/')[2]} {mutant.function}".rstrip()
    number = f" (no. {mutant.occurrence + 1})" if mutant.occurrence else ""
    return f"{place}: {mutant.before}  ->  {mutant.after}{number}"


if __name__ == "__main__":
    main()
