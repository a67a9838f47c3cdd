"""Is the procedure honest? Its error rate, coverage and power in simulated experiments, looks included, and those of
the naive rules beside it.

Outcomes are drawn from the laws of simulation/laws.py; the naive rules, which need episodes, get curves. The simulated
procedure is first compared with the package's own code, experiment by experiment, and some experiments are carried out
by the real engine with fake workers (tests/support). Deterministic; exit status 1 when they differ, or a limit is
broken.

    scripts/validate_statistics              the tables of docs/evidence/statistics.md and benchmarks/statistics.json
    scripts/validate_statistics --quick      few experiments, writes nothing; a limit is broken only when surely so
    scripts/validate_statistics --families   only several tasks with their mean, and clusters: table and data
    scripts/validate_statistics --stops      only stops for futility, and positions that cannot matter: likewise
    scripts/validate_statistics --sentences  only whether words, numbers and requirements contradict one another
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from marks import between
from simulation import agreement, engine, families, laws, rules, sentences, table
from simulation.results import COVERAGE_LIMIT, ERROR_LIMIT, Limit, Row, checks, rows
from simulation.tasks import SHIFTS, Tally, Task, add, tasks, work

from esper_ab.health.processor import name_of_processor

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs/evidence/statistics.md", ROOT / "docs/evidence/benchmarks/statistics.json"
MARK = "statistics table"
STOPS_MARK, STOPS_DATA = "stops table", ROOT / "docs/evidence/benchmarks/stops.json"
FAMILIES_MARK, FAMILIES_DATA = "families table", ROOT / "docs/evidence/benchmarks/families.json"
RNG_SEED = 20_260_000
WORKERS = min(2, len(os.sched_getaffinity(0)))


@dataclass(frozen=True)
class Scale:
    """Experiments per law and correlation, by part; compared ones per rule."""

    pairs: int
    naive: int
    stops: int
    families: int
    positions: int
    sentences: int
    compared: int
    engine: int  # experiments without effect, and as many with one


FULL = Scale(
    pairs=50_000, naive=5_000, stops=20_000, families=20_000, positions=50_000, sentences=20_000, compared=300,
    engine=100,
)  # fmt: skip
QUICK = Scale(
    pairs=2_000, naive=500, stops=1_000, families=300, positions=2_000, sentences=1_000, compared=50, engine=10,
)  # fmt: skip


def compare(scale: Scale, pool: ProcessPoolExecutor) -> dict[str, dict[str, int]]:
    """Decisions that both codes agree on, by rule; exit status 1 where they differ, or one never occurred."""
    every = rules.EVERY_RULE
    try:
        seeds = range(RNG_SEED, RNG_SEED + len(every))
        found = list(pool.map(agreement.check, every, itertools.repeat(scale.compared), seeds))
    except AssertionError as difference:
        raise SystemExit(f"the simulated procedure is not the package's: {difference}") from None
    seen = sum(found, Counter())
    if set(seen) != {"open", "crossed", "equivalent", "futile"}:
        raise SystemExit(f"the comparison with the package's code did not see every decision: {dict(seen)}")
    return {rule.name: dict(sorted(counter.items())) for rule, counter in zip(every, found, strict=True)}


def carry_out(scale: Scale, pool: ProcessPoolExecutor) -> dict[str, dict[str, int]]:
    """What the engine came to, without and with an effect; exit status 1 where the simulation decides otherwise."""
    found = {}
    for truth in ("none", "d=1"):
        effects, seeds = itertools.repeat(SHIFTS[truth]), itertools.repeat(RNG_SEED)
        try:
            found[truth] = dict(sum(pool.map(engine.check, effects, range(scale.engine), seeds), Counter()))
        except AssertionError as difference:
            raise SystemExit(f"the engine decides otherwise than the simulated procedure: {difference}") from None
    return found


def simulate(scale: Scale, pool: ProcessPoolExecutor) -> list[Row]:
    """All parts, all laws."""
    return _done(pool, [
        *tasks("pairs", laws.LAWS, scale.pairs, RNG_SEED),
        *tasks("naive", (*laws.LAWS, laws.FIXED_LANES), scale.naive, RNG_SEED),
    ])  # fmt: skip


def stops(scale: Scale, pool: ProcessPoolExecutor) -> list[Row]:
    """Stops for futility, and plans in which positions cannot matter."""
    lanes_alike = tuple(law for law in laws.LAWS if law.lanes == "none")
    return _done(pool, [
        *tasks("stops", laws.LAWS[:1], scale.stops, RNG_SEED, rhos=(0.0,)),
        *tasks("positions", lanes_alike, scale.positions, RNG_SEED),
    ])  # fmt: skip


def of_several_tasks(scale: Scale, pool: ProcessPoolExecutor) -> list[Row]:
    """Several tasks with their mean, and pairs in clusters."""
    return _done(pool, [
        *tasks("families", families.LAWS, scale.families, RNG_SEED, rhos=(0.3,)),
        *tasks("clusters", families.LAWS, 2 * scale.families, RNG_SEED, rhos=(0.0,)),
    ])  # fmt: skip


def of_sentences(scale: Scale, pool: ProcessPoolExecutor, *, quick: bool) -> tuple[int, list[str]]:
    """Made-up comparisons by verdict, printed, and what contradicts."""
    del quick  # nothing is written
    parts = pool.map(sentences.check, itertools.repeat(RNG_SEED), range(scale.sentences // sentences.PIECE))
    seen: Counter[str] = Counter()
    broken: list[str] = []
    for verdicts, wrong in parts:
        seen += verdicts
        broken += wrong
    print(f"{sum(seen.values())} made-up comparisons, {len(broken)} contradictions: {dict(seen.most_common())}")
    return sum(seen.values()), broken


def _done(pool: ProcessPoolExecutor, todo: list[Task]) -> list[Row]:
    total: Tally = {}
    start = time.monotonic()
    for done, part in enumerate(pool.map(work, todo), start=1):
        add(total, part)
        if done % 100 == 0:
            print(f"{done} of {len(todo)} pieces, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return rows(total)


def write(place: tuple[Path, str], found: list[Row], compared: dict[str, Any], text: str, broken: list[str]) -> None:
    """The data, one row per line, and the page between the marks; `compared` goes into the data as it is."""
    data, mark = place
    head = {
        "rng_seed": RNG_SEED, "experiments": vars(FULL), "error_limit": ERROR_LIMIT, "coverage_limit": COVERAGE_LIMIT,
        "broken": broken, "processor": name_of_processor(), **compared,
    }  # fmt: skip
    lines = ",\n".join(json.dumps(row.as_dict()) for row in found)
    data.parent.mkdir(exist_ok=True)
    data.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "rows": [\n{lines}\n]}}\n')
    PAGE.write_text(between(PAGE.read_text(), mark, text))


def judged(found: list[Row], *, quick: bool) -> tuple[list[Limit], list[str]]:
    """Every limit, and the sentences of those that are broken."""
    limits = checks(found)
    return limits, [limit.sentence for limit in limits if (limit.surely_broken if quick else limit.broken)]


Measure = Callable[[Scale, ProcessPoolExecutor], list[Row]]
Render = Callable[[list[Row]], str]


def of_one(
    measure: Measure, render: Render, place: tuple[Path, str], scale: Scale, pool: ProcessPoolExecutor, *, quick: bool
) -> tuple[int, list[str]]:
    """Measure, print and, unless quick, write one table: limits checked, and those broken."""
    found = measure(scale, pool)
    limits, broken = judged(found, quick=quick)
    text = f"{render(found)}\n\n{table.verdict(limits, broken)}"
    print(text)
    if not quick:
        write(place, found, {}, text, broken)
    return len(limits), broken


of_families = partial(of_one, of_several_tasks, table.of_families, (FAMILIES_DATA, FAMILIES_MARK))
of_stops = partial(of_one, stops, table.stops, (STOPS_DATA, STOPS_MARK))


def of_the_rest(scale: Scale, pool: ProcessPoolExecutor, *, quick: bool) -> tuple[int, list[str]]:
    """The same of all other tables."""
    agreed = compare(scale, pool)
    print(f"the package's code agrees on {scale.compared} experiments of each of {len(agreed)} rules", flush=True)
    engine_found = carry_out(scale, pool)
    print(f"the engine, too: {engine_found}", flush=True)
    found = simulate(scale, pool)
    limits, broken = judged(found, quick=quick)
    text = "\n\n".join([*table.tables(found), table.engine(found, engine_found), table.verdict(limits, broken)])
    text = f"{table.introduction(found, scale.compared)}\n\n{text}"
    print(text)
    if not quick:
        known = {"agreed_with_the_package": agreed, "agreed_with_the_engine": engine_found}
        write((DATA, MARK), found, known, text, broken)
    return len(limits), broken


def main() -> None:
    """Parse the command line and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few experiments, for trying; writes nothing")
    parser.add_argument("--families", action="store_true", help="only several tasks with their mean, and clusters")
    parser.add_argument("--stops", action="store_true", help="only stops for futility, and free positions")
    parser.add_argument("--sentences", action="store_true", help="only contradictions in words and numbers")
    asked = parser.parse_args()
    scale = QUICK if asked.quick else FULL
    only: dict[Callable[..., tuple[int, list[str]]], bool] = {
        of_families: asked.families, of_stops: asked.stops, of_sentences: asked.sentences,
    }  # fmt: skip
    parts = [part for part, chosen in only.items() if chosen] or [of_the_rest, *only]
    with ProcessPoolExecutor(WORKERS) as pool:
        done = [part(scale, pool, quick=asked.quick) for part in parts]
    broken = [sentence for _, sentences in done for sentence in sentences]
    for sentence in broken:
        print(f"broken: {sentence}", file=sys.stderr)
    print(f"{sum(count for count, _ in done)} limits, {len(broken)} broken", file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
