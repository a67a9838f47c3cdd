"""Journals whose lines are intact and which no version of esper_ab writes: the fold refuses each of them by a text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from support.journals import one_replicate, write

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.records import RunRef
from esper_ab.design.design import Contrast
from esper_ab.journal.events import (
    AnyEvent,
    EpisodeRecorded,
    Incident,
    MilestoneReleased,
    PlanExtended,
    RunEvaluated,
    RunReady,
    RunStarted,
)
from esper_ab.journal.fold import Inconsistent, fold
from esper_ab.journal.load import load
from esper_ab.plan.blocks import extend
from esper_ab.plan.plan import Block, Extension, Plan

EVENTS = one_replicate()
PLAN: Plan = EVENTS[0].plan
EXTENSION = extend(PLAN, PLAN.design, 1, 1)
UNPLANNED = "run 'shaped/99' is not in the plan"
Part = Plan | Extension


def first(kind: type[AnyEvent]) -> AnyEvent:
    return next(event for event in EVENTS if isinstance(event, kind))


def with_ref(part: Part, **change: object) -> Part:
    """The plan or extension, where the reference of its first run is another."""
    block, *blocks = part.blocks
    spec, *specs = block.runs
    changed = replace(block, runs=(replace(spec, ref=replace(spec.ref, **change)), *specs))
    return replace(part, blocks=(changed, *blocks))


def comparing(part: Part, a: str, b: str) -> Part:
    return replace(part, design=replace(part.design, comparisons=(Contrast(a=a, b=b),)))


# What makes a plan, and just so an extension of it, one that cannot be.
WRONG_PLANS: dict[str, tuple[Callable[[Part], Part], str]] = {
    "no blocks": (lambda part: replace(part, blocks=()), "the plan trains no group"),
    "no runs": (lambda part: replace(part, blocks=(Block(replicate=1, runs=()),)), "the plan trains no group"),
    "compares a": (
        lambda part: comparing(part, "sparse", "shaped"), "the plan compares 'sparse', which is not one of its groups",
    ),
    "compares b": (
        lambda part: comparing(part, "shaped", "sparse"), "the plan compares 'sparse', which is not one of its groups",
    ),
    "trains": (
        lambda part: with_ref(part, group_id="sparse"), "the plan trains 'sparse', which is not one of its groups",
    ),
    "trains on": (
        lambda part: with_ref(part, device="cpu:9"), "the plan trains on 'cpu:9', which is not one of its devices",
    ),
}  # fmt: skip


def of_unplanned_run() -> dict[str, AnyEvent]:
    """An event of every kind that is about a run, of one that the plan has not."""
    ref: RunRef = replace(first(RunStarted).run, name="shaped/99")
    record, evaluation = first(EpisodeRecorded).record, first(RunEvaluated).record
    return {
        "starts": RunStarted(run=ref, worker="w0", incarnation=0),
        "is ready": RunReady(run=ref, warm_up_s=0.1),
        "records": EpisodeRecorded(record=replace(record, run=ref)),
        "is evaluated": RunEvaluated(record=replace(evaluation, run=ref)),
        "is released": MilestoneReleased(replicate=0, milestone=0, runs=("shaped/0", "shaped/99")),
        "has an incident": Incident(category="restart", run_name="shaped/99", detail=""),
    }


def of_no_run(category: str) -> Incident:
    return Incident(category=category, run_name="", detail="")


def evaluated(**change: object) -> RunEvaluated:
    """An evaluation whose last environment is another."""
    record = first(RunEvaluated).record
    *others, last = record.episodes
    changed = replace(last, outcome=replace(last.outcome, **change))
    return RunEvaluated(record=replace(record, episodes=(*others, changed)))


def recorded(**change: object) -> EpisodeRecorded:
    record = first(EpisodeRecorded).record
    *others, last = record.envs
    return EpisodeRecorded(record=replace(record, envs=(*others, replace(last, **change))))


REVERSED = dict(reversed(first(RunEvaluated).record.episodes[0].outcome.measures.items()))
AFTER_THE_START: dict[str, tuple[AnyEvent, str]] = {
    "starts twice": (EVENTS[0], "the experiment starts a second time"),
    **{name: (event, UNPLANNED) for name, event in of_unplanned_run().items()},
    **{
        f"{category} of no run": (of_no_run(category), "run '' is not in the plan")
        for category in ("ppo_pathology", "dropped_pair", "cancelled")
    },
    "other measures": (recorded(measures={"speed": 1.0}), "episode 0 of shaped/0 has other measures than its plan"),
    "measures in another order": (
        recorded(measures=REVERSED), "episode 0 of shaped/0 has other measures than its plan",
    ),
    "evaluation of other measures": (
        evaluated(measures=REVERSED), "the evaluation of shaped/0 has other measures than its plan",
    ),
    "evaluation without an outcome": (
        evaluated(outcome=None), "the evaluation of shaped/0 has an environment without an outcome",
    ),
    **{
        f"extension: {name}": (PlanExtended(extension=change(EXTENSION)), text)
        for name, (change, text) in WRONG_PLANS.items()
    },
}  # fmt: skip
STARTS: dict[str, tuple[AnyEvent, str]] = {
    f"plan: {name}": (replace(EVENTS[0], plan=change(PLAN)), text) for name, (change, text) in WRONG_PLANS.items()
}
NOT_BEGUN = "it does not begin with experiment_started"
REFUSED: dict[str, tuple[list[AnyEvent], str]] = {
    "empty": ([], NOT_BEGUN),
    "begins later": (EVENTS[1:], NOT_BEGUN),
    **{name: ([start, *EVENTS[1:]], text) for name, (start, text) in STARTS.items()},
    **{name: ([*EVENTS[:5], event, *EVENTS[5:]], text) for name, (event, text) in AFTER_THE_START.items()},
}


@pytest.mark.parametrize(("events", "text"), REFUSED.values(), ids=REFUSED)
def test_a_journal_that_cannot_be_is_refused(events, text):
    with pytest.raises(Inconsistent) as refused:
        fold(events)
    assert str(refused.value) == text


def test_the_line_that_does_not_fit_is_named(tmp_path):
    event, text = AFTER_THE_START["starts twice"]
    with pytest.raises(JournalError) as refused:
        load(write(tmp_path / "run", [*EVENTS[:5], event, *EVENTS[5:]]))
    assert str(refused.value).endswith(f"events.jsonl, line 6: intact, but {text}: not a journal of esper_ab")
