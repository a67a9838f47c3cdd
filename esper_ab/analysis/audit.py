"""The audit: everything besides the groups' settings that could explain a difference between groups. Pure.

Each finding is one sentence with its numbers and a weight: it blocks verdicts, caps them, or is only noted. A finding
about two groups names both and covers the replicates that their comparison uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TypeVar

from esper_ab.analysis import audit_conduct, audit_setup, audit_updates
from esper_ab.analysis.kinds import kind_of
from esper_ab.analysis.observe import Pairs
from esper_ab.contracts.kinds_of_task import GYMNASIUM, kind_of_task
from esper_ab.contracts.worker_order import Lane
from esper_ab.design.counterbalance import identified
from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import outcome_of
from esper_ab.plan.blocks import positions
from esper_ab.plan.plan import Block
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.finding import Finding

Level = TypeVar("Level", int, str)
Places = Mapping[int, Mapping[Hashable, tuple[str, int]]]  # by replicate and group: lane, start order within the block


def audit(history: History, pairs: Pairs) -> Iterator[Finding]:
    """Audit everything recorded so far; `pairs`: the pairs of every comparison."""
    yield from _of_comparisons(history, pairs)
    yield from audit_setup.setup_findings(history)
    yield from audit_conduct.conduct_findings(history)
    yield from audit_updates.update_findings(history)
    yield from kind_of(history).findings(history, pairs)
    yield from _no_number(history)


def _of_comparisons(history: History, pairs: Pairs) -> Iterator[Finding]:
    all_balanced = True
    for contrast in history.design.comparisons:
        used = {pair.replicate for pair in pairs[contrast]}
        places = _places(history.blocks, contrast, used)
        yield from _aliased(history, contrast, places)
        yield from _position_balance(history, contrast, places)
        yield from _amounts(history, contrast, used)
        for finding in _hardware(history, contrast, places):
            all_balanced = False
            yield finding
    kinds = sorted({hardware(lane) for lane in history.plan.lanes})
    if len(kinds) > 1 and all_balanced:
        yield Finding(
            "hardware",
            "notes",
            (),
            f"Lanes use different hardware ({', '.join(kinds)}); compared groups ran equally often on each.",
        )


def _no_number(history: History) -> Iterator[Finding]:
    for group in history.groups:
        runs = [
            run.ref.name
            for run in history.of_group(group)
            if run.evaluation is not None and not run.lost and outcome_of(run, history.design.outcome_over) is None
        ]
        if runs:
            yield Finding(
                "outcome",
                "blocks",
                (group,),
                f"The outcome of {', '.join(runs)} is not a finite number: the record is damaged or foreign.",
            )


def _places(blocks: Sequence[Block], contrast: Contrast, replicates: set[int]) -> Places:
    """Return the places of both runs of every pair of `replicates`."""
    return {
        block.replicate: {
            spec.ref.group_id: (spec.ref.device, order)
            for order, spec in enumerate(block.runs)
            if spec.ref.group_id in contrast.groups
        }
        for block in blocks
        if block.replicate in replicates
    }


def _aliased(history: History, contrast: Contrast, places: Places) -> Iterator[Finding]:
    """Report an aliased design, unless there are too few pairs for any inference, which the verdict itself says.

    If positions were drawn at random, their effects are noise like any other. While future replicates can still
    separate the groups from positions, nothing is blocked, because no look decides before those replicates.
    """
    if len(places) < LEAST_PAIRS or history.design.positions_drawn or identified([*places.values()]):
        return
    said = f"In the {len(places)} analysed seeds the difference between {contrast.a} and {contrast.b}"
    if not history.design.positions_matter:
        yield Finding(
            "aliased",
            "notes",
            contrast.groups,
            f"{said} coincides with device and start order; nothing is confounded, because no record can depend on "
            "them.",
        )
        return
    said = f"{said} cannot be separated from the effects of device and start order: the design does not have full rank."
    runs = {block.replicate: [history.runs[spec.ref.name] for spec in block.runs] for block in history.blocks}
    coming = {
        replicate
        for replicate, several in runs.items()
        if {run.expected for run in several if run.ref.group_id in contrast.groups} == {True}
    }
    if identified([*_places(history.blocks, contrast, coming | places.keys()).values()]):
        later = "No look decides before further seeds separate them."
        yield Finding("aliased", "notes", contrast.groups, f"{said} {later}")
    else:
        yield Finding("aliased", "blocks", contrast.groups, f"{said} {_remedy(history, contrast, places)}")


def _remedy(history: History, contrast: Contrast, places: Places) -> str:
    """Say whether more replicates or a different order would separate an aliased comparison from its positions."""
    experiment = history.plan.experiment
    n_sets = len(history.plan.lanes) // len(history.plan.experiment.groups)
    names = [group.name for group in experiment.groups]
    more = dict(places)
    if experiment.order == "fixed":
        return "An experiment with `--order balanced` would separate them; more seeds would not."
    for replicate in range(history.replicates, history.replicates + 2 * len(names) * n_sets):
        lanes = history.plan.lanes[replicate % n_sets * len(names) :]
        more[replicate] = {
            names[group]: (lanes[place].name, place)
            for place, group in enumerate(positions(experiment, replicate, n_sets))
            if names[group] in contrast.groups
        }
        if identified([*more.values()]):
            return f"{replicate + 1} seeds would separate them: `esper-ab resume --seeds` adds the missing ones."
    return "Another experiment, with fewer lost seeds, would separate them."


def _position_balance(history: History, contrast: Contrast, places: Places) -> Iterator[Finding]:
    """Report unequal start positions if their effects are not adjusted for and only balance cancels them."""
    unneeded = history.design.adjusted or history.design.positions_drawn or not history.design.positions_matter
    if unneeded or len(places) < 2:  # with one pair there is nothing to balance
        return
    unbalanced = _excess(contrast, places, lambda _, order: order)
    if unbalanced:
        counts = ", ".join(f"{count:+d} at {order + 1}" for order, count in unbalanced)
        yield Finding(
            "order",
            "notes",
            contrast.groups,
            f"{contrast.a} and {contrast.b} were not equally often at each place in the start order "
            f"(runs of {contrast.a} minus runs of {contrast.b}: {counts}), and the analysis does not adjust for device "
            "and order.",
        )


def _excess(contrast: Contrast, places: Places, level: Callable[[str, int], Level]) -> list[tuple[Level, int]]:
    """Return, for each `level` of lane and order whose numbers differ, how many more runs the first group has there."""
    excess: Counter[Level] = Counter()
    for runs in places.values():
        excess[level(*runs[contrast.a])] += 1
        excess[level(*runs[contrast.b])] -= 1
    return sorted((key, count) for key, count in excess.items() if count)


def _amounts(history: History, contrast: Contrast, replicates: set[int]) -> Iterator[Finding]:
    if not replicates:
        return
    runs = ([run for run in history.of_group(group) if run.ref.replicate in replicates] for group in contrast.groups)
    totals = ([sum(column) for column in zip(*map(_amount, several), strict=True)] for several in runs)
    what = ("training episodes", "environment steps", "evaluation episodes")
    unequal = {name: f"{a} against {b} {name}" for name, a, b in zip(what, *totals, strict=True) if a != b}
    specs = (run.spec for group in contrast.groups for run in history.of_group(group))
    ends_by_itself = any(  # in one of the groups, the policy determines how long an episode lasts
        kind_of_task(spec.task) == GYMNASIUM and spec.settings.gym.rollout == "episodes" for spec in specs
    )
    if list(unequal) == [what[1]] and ends_by_itself:
        sentence = (
            f"{contrast.a} and {contrast.b} trained for equally many episodes, but their lengths depend on the policy: "
            f"{unequal[what[1]]}. With gym.rollout=resets they would train for equally many steps."
        )
        yield Finding("amounts", "notes", contrast.groups, sentence)
    elif unequal:
        sentence = f"{contrast.a} and {contrast.b} did not do the same amount of work: {'; '.join(unequal.values())}."
        yield Finding("amounts", "blocks", contrast.groups, sentence)


def _amount(run: RunHistory) -> tuple[int, int, int]:
    """Return training episodes, environment steps, and evaluation episodes with sampled actions.

    A failed environment counts with its planned steps, because its shorter episode is an outcome.
    """
    columns = run.columns
    steps = int(sum(columns.of("steps")) - sum(columns.of("failed_steps")))
    steps += run.spec.steps * int(sum(columns.of("failed")))
    evaluated = run.evaluation.episodes if run.evaluation else ()
    return len(run.columns), steps, sum(played.actions == "sampled" for played in evaluated)


def hardware(lane: Lane) -> str:
    """Return the kinds of devices of a lane, as far as the plan records them."""
    kinds = {
        title or ("CPU core" if device.startswith("cpu:") else "GPU")
        for device, title in zip_longest(lane.devices, lane.titles, fillvalue="")
    }
    return " + ".join(sorted(kinds))


def _hardware(history: History, contrast: Contrast, places: Places) -> Iterator[Finding]:
    kinds = {lane.name: hardware(lane) for lane in history.plan.lanes}
    unbalanced = _excess(contrast, places, lambda lane, _: kinds[lane])
    if unbalanced:
        counts = ", ".join(f"{count:+d} on {kind}" for kind, count in unbalanced)
        yield Finding(
            "hardware",
            "caps",
            contrast.groups,
            f"{contrast.a} and {contrast.b} did not run equally often on each kind of hardware (runs of {contrast.a} "
            f"minus runs of {contrast.b}: {counts}).",
        )
