"""Which barrier a block gets and, where its runs take turns, the order of every episode."""

from __future__ import annotations

from esper_ab.contracts.rng import run_path
from esper_ab.control.rules import barrier
from esper_ab.design.counterbalance import shuffled
from esper_ab.plan.plan import Block, Plan


def barrier_of(block: Block, plan: Plan) -> barrier.BarrierState:
    """The block's barrier before its first arrival. Taking turns implies waiting for each other.

    Runs in sequence go in the block's start order, which the plan has chosen.
    """
    runs = tuple(spec.ref.name for spec in block.runs)
    last = plan.experiment.episodes + 1
    if plan.experiment.placement == "alternate":
        return barrier.begin("alternate", runs, last, turns(plan.experiment.rng_seed, block.replicate, runs, last))
    if plan.experiment.placement == "sequence":
        return barrier.begin("sequence", runs, last)
    return barrier.begin(plan.experiment.sync, runs, last)


def turns(rng_seed: int, replicate: int, runs: tuple[str, ...], last: int) -> tuple[tuple[str, ...], ...]:
    """An order of `runs` drawn afresh for every milestone before `last`."""
    path = run_path(rng_seed, replicate) / "turns"
    return tuple(tuple(runs[i] for i in shuffled(len(runs), path / milestone)) for milestone in range(last))
