"""Which barrier a block gets and, where its runs take turns, the order of every episode. Pure."""

from __future__ import annotations

from esper_ab.contracts.rng import run_path
from esper_ab.control import barrier
from esper_ab.plan import Block, Plan


def barrier_of(block: Block, plan: Plan) -> barrier.State:
    """The block's barrier before its first arrival. Taking turns implies waiting for each other."""
    runs = tuple(spec.ref.run for spec in block.runs)
    last = plan.experiment.episodes + 1
    if plan.experiment.placement == "alternate":
        return barrier.begin("alternate", runs, last, turns(plan.experiment.rng_seed, block.replicate, runs, last))
    return barrier.begin(plan.experiment.sync, runs, last)


def turns(rng_seed: int, replicate: int, runs: tuple[str, ...], last: int) -> tuple[tuple[str, ...], ...]:
    """An order of `runs` drawn afresh for every point before `last`: positions sorted by independent 128-bit hashes."""
    path = run_path(rng_seed, replicate) / "turns"
    return tuple(
        tuple(runs[i] for i in sorted(range(len(runs)), key=lambda i: (path / point / i).key()))
        for point in range(last)
    )
