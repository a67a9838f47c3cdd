"""Audit of the compared groups' runs: devices, start order and amounts of work, each equal or separable. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TypeVar

from esper_ab.analysis.kind import FindingsKind
from esper_ab.analysis.observe import ComparedPairs
from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.contracts.worker_order import Lane
from esper_ab.design.counterbalance import identified
from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History
from esper_ab.plan.blocks import positions
from esper_ab.plan.plan import Block
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.verdict.finding import Finding

Level = TypeVar("Level", int, str)
Places = Mapping[int, Mapping[Hashable, tuple[str, int]]]  # by replicate and group: lane, start order within the block
_STEPS = "environment steps"


def comparison_findings(history: History, pairs: ComparedPairs) -> Iterator[Finding]:
    """Yield findings on each comparison, and a note if hardware differs in balance. `pairs`: by comparison."""
    all_balanced = True
    for contrast in history.design.comparisons:
        used_replicates = {pair.replicate for pair in pairs[contrast]}
        places_by_replicate = _places(history.blocks, contrast, used_replicates)
        yield from _aliasing(history, contrast, places_by_replicate)
        yield from _position_balance(history, contrast, places_by_replicate)
        yield from _amounts(history, contrast, used_replicates)
        for finding in _hardware(history, contrast, places_by_replicate):
            all_balanced = False
            yield finding
    kinds = {hardware(lane) for lane in history.plan.lanes}
    if len(kinds) > 1 and all_balanced:
        hardware_words = ", ".join(sorted(kinds))
        sentence = f"Lanes use different hardware ({hardware_words}); compared groups ran equally often on each."
        yield Finding("hardware", "notes", (), sentence)


def _places(blocks: Sequence[Block], contrast: Contrast, replicates: set[int]) -> Places:
    """Return the places of both runs of every pair of `replicates`."""
    places_by_replicate: dict[int, dict[Hashable, tuple[str, int]]] = {}
    for block in blocks:
        if block.replicate not in replicates:
            continue
        block_places: dict[Hashable, tuple[str, int]] = {}
        for order, spec in enumerate(block.runs):
            if spec.ref.group_id in contrast.groups:
                block_places[spec.ref.group_id] = (spec.ref.device, order)
        places_by_replicate[block.replicate] = block_places
    return places_by_replicate


def _aliasing(history: History, contrast: Contrast, places_by_replicate: Places) -> Iterator[Finding]:
    """Report an aliased design, unless there are too few pairs for any inference, which the verdict itself says.

    If positions were drawn at random, their effects are noise like any other. While future replicates can still
    separate the groups from positions, nothing is blocked, because no look decides before those replicates.
    """
    if len(places_by_replicate) < LEAST_PAIRS or history.design.positions_drawn or _separated(places_by_replicate):
        return
    difference = (
        f"In the {len(places_by_replicate)} analysed seeds the difference between {contrast.a} and {contrast.b}"
    )
    if not history.design.positions_matter:
        yield Finding(
            "aliased",
            "notes",
            contrast.groups,
            f"{difference} coincides with device and start order; nothing is confounded, because no record can depend "
            "on them.",
        )
        return
    aliasing_words = (
        f"{difference} cannot be separated from the effects of device and start order: the design does not have full "
        "rank."
    )
    complete_replicates = _expected_replicates(history, contrast) | places_by_replicate.keys()
    if _separated(_places(history.blocks, contrast, complete_replicates)):
        sentence = f"{aliasing_words} No look decides before further seeds separate them."
        yield Finding("aliased", "notes", contrast.groups, sentence)
    else:
        sentence = f"{aliasing_words} {_remedy(history, contrast, places_by_replicate)}"
        yield Finding("aliased", "blocks", contrast.groups, sentence)


def _separated(places_by_replicate: Places) -> bool:
    """True if these places separate the groups from the effects of device and start order."""
    return identified(list(places_by_replicate.values()))


def _expected_replicates(history: History, contrast: Contrast) -> set[int]:
    """Return the replicates in which all runs of both groups are still expected to finish."""
    expected = set()
    for block in history.blocks:
        runs = [history.runs[spec.ref.name] for spec in block.runs if spec.ref.group_id in contrast.groups]
        if runs and all(run.expected for run in runs):
            expected.add(block.replicate)
    return expected


def _remedy(history: History, contrast: Contrast, places_by_replicate: Places) -> str:
    """Say whether more replicates or a different order would separate an aliased comparison from its positions."""
    experiment = history.plan.experiment
    if experiment.order == "fixed":
        return "An experiment with `--order balanced` would separate them; more seeds would not."
    names = [group.name for group in experiment.groups]
    n_sets = len(history.plan.lanes) // len(names)
    extended_places = dict(places_by_replicate)
    for replicate in range(history.replicates, history.replicates + 2 * len(names) * n_sets):
        lanes = history.plan.lanes[replicate % n_sets * len(names) :]
        planned_places: dict[Hashable, tuple[str, int]] = {}
        for place, group in enumerate(positions(experiment, replicate, n_sets)):
            if names[group] in contrast.groups:
                planned_places[names[group]] = (lanes[place].name, place)
        extended_places[replicate] = planned_places
        if _separated(extended_places):
            return f"{replicate + 1} seeds would separate them: `esper-ab resume --seeds` adds the missing ones."
    return "Another experiment, with fewer lost seeds, would separate them."


def _position_balance(history: History, contrast: Contrast, places_by_replicate: Places) -> Iterator[Finding]:
    """Report unequal start positions if their effects are not adjusted for and only balance cancels them."""
    design = history.design
    is_unneeded = design.adjusted or design.positions_drawn or not design.positions_matter
    if is_unneeded or len(places_by_replicate) < 2:  # with one pair there is nothing to balance
        return
    balance_words = _excess(contrast, places_by_replicate, lambda _, order: order)
    if balance_words:
        counts = ", ".join(f"{count:+d} at {order + 1}" for order, count in balance_words)
        sentence = (
            f"{contrast.a} and {contrast.b} were not equally often at each place in the start order "
            f"(runs of {contrast.a} minus runs of {contrast.b}: {counts}), and the analysis does not adjust for device "
            "and order."
        )
        yield Finding("order", "notes", contrast.groups, sentence)


def _excess(
    contrast: Contrast, places_by_replicate: Places, level: Callable[[str, int], Level]
) -> list[tuple[Level, int]]:
    """Return, for each `level` of lane and order whose numbers differ, how many more runs the first group has there."""
    excess: Counter[Level] = Counter()
    for runs in places_by_replicate.values():
        excess[level(*runs[contrast.a])] += 1
        excess[level(*runs[contrast.b])] -= 1
    return sorted((key, count) for key, count in excess.items() if count)


def _amounts(history: History, contrast: Contrast, replicates: set[int]) -> Iterator[Finding]:
    if not replicates:
        return
    amounts_a = _total_amounts(history, contrast.a, replicates)
    amounts_b = _total_amounts(history, contrast.b, replicates)
    unequal_amounts = {}
    for name, a in amounts_a.items():
        b = amounts_b[name]
        if a != b:
            unequal_amounts[name] = f"{a} against {b} {name}"
    remedy = ""
    if list(unequal_amounts) == [_STEPS]:
        remedy = _equal_steps_setting(history, contrast)
    if remedy:
        sentence = (
            f"{contrast.a} and {contrast.b} trained for equally many episodes, but their lengths depend on the policy: "
            f"{unequal_amounts[_STEPS]}. With {remedy} they would train for equally many steps."
        )
        yield Finding("amounts", "notes", contrast.groups, sentence)
    elif unequal_amounts:
        sentence = (
            f"{contrast.a} and {contrast.b} did not do the same amount of work: {'; '.join(unequal_amounts.values())}."
        )
        yield Finding("amounts", "blocks", contrast.groups, sentence)


def _equal_steps_setting(history: History, contrast: Contrast) -> str:
    """Return the setting that gives equally many steps if, in one of the groups, the policy ends its episodes."""
    kind = of_kind(history.plan.kind, FindingsKind)
    for group in contrast.groups:
        for run in history.of_group(group):
            setting = kind.equal_steps(run.spec.settings)
            if setting:
                return setting
    return ""


def _total_amounts(history: History, group: str, replicates: set[int]) -> dict[str, int]:
    """Return the work of a group's runs in `replicates`: training episodes, steps, and sampled evaluation episodes.

    A failed environment counts with its planned steps, because its shorter episode is an outcome.
    """
    training_episodes = 0
    steps = 0
    evaluated_episodes = 0
    for run in history.of_group(group):
        if run.ref.replicate not in replicates:
            continue
        columns = run.columns
        training_episodes += len(columns)
        steps += int(sum(columns.of("steps")) - sum(columns.of("failed_steps")))
        steps += run.spec.steps * int(sum(columns.of("failed")))
        if run.evaluation:
            evaluated_episodes += sum(episode.actions == "sampled" for episode in run.evaluation.episodes)
    return {"training episodes": training_episodes, _STEPS: steps, "evaluation episodes": evaluated_episodes}


def hardware(lane: Lane) -> str:
    """Return the kinds of devices of a lane, as far as the plan records them."""
    kinds = set()
    for device, title in zip_longest(lane.devices, lane.titles, fillvalue=""):
        if title:
            kinds.add(title)
        elif device.startswith("cpu:"):
            kinds.add("CPU core")
        else:
            kinds.add("GPU")
    return " + ".join(sorted(kinds))


def _hardware(history: History, contrast: Contrast, places_by_replicate: Places) -> Iterator[Finding]:
    kinds = {lane.name: hardware(lane) for lane in history.plan.lanes}
    balance_words = _excess(contrast, places_by_replicate, lambda lane, _: kinds[lane])
    if balance_words:
        counts = ", ".join(f"{count:+d} on {kind}" for kind, count in balance_words)
        sentence = (
            f"{contrast.a} and {contrast.b} did not run equally often on each kind of hardware (runs of {contrast.a} "
            f"minus runs of {contrast.b}: {counts})."
        )
        yield Finding("hardware", "caps", contrast.groups, sentence)
