"""What must agree between several experiment directories, and which of their groups are one condition.

A random number's address has the rng seed and the replicate, never a group or an experiment. So groups with equal
settings must have equal records wherever they ran, and groups with different settings form pairs by replicate. The
result is exploratory: whatever else differed between the directories was not balanced, and nothing was declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from esper_ab.analysis.analyse import facts_of
from esper_ab.analysis.observe import digests_of, progress_of, rows_of, scale_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.plain_values import as_text
from esper_ab.contracts.settings import GroupSettings
from esper_ab.contracts.shell_command import shell_command
from esper_ab.design.calibration_file import circumstances_of
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.answer import Answer
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.observations import Observation, Observations
from esper_ab.verdict.scale import Scale

Source = tuple[str, History]  # an experiment directory's name, as the user gave it, and its history


@dataclass(frozen=True, kw_only=True)
class _Condition:
    """Groups with equal settings, over all directories."""

    name: str
    settings: GroupSettings
    members: list[tuple[str, History, str]]  # directory name, history, and the group's name there


def read_sources(folders: Sequence[Path]) -> list[Source]:
    """Load the journals of several experiment directories. Raises UsageError if there are not at least two of them."""
    if len(folders) < 2:
        one = shell_command("report", folders[0])
        raise UsageError(f"compare needs at least two experiment directories; `{one}` reports on one")
    seen: dict[Path, Path] = {}
    for folder in folders:
        if (first := seen.setdefault(folder.resolve(), folder)) is not folder:
            raise UsageError(f"{first} and {folder} are the same experiment directory")
    return [(str(folder), load(folder).history) for folder in folders]


def compare_sources(sources: Sequence[Source], rule: Rule) -> Answer:
    """Compare the groups of all directories, as an exploratory analysis.

    Raises UsageError, with one line per reason, if the directories do not match.
    """
    observations, scale = observe_together(sources)
    answer = explore(observations, (scale,), rule, rows="runs")
    return replace(answer, notes=(*answer.notes, *_declared(sources)))


def observe_together(sources: Sequence[Source]) -> tuple[Observations, Scale]:
    """Return the runs of all directories, paired by replicate, and the scale of their outcome.

    Raises UsageError, with one line per reason, if they cannot be compared.
    """
    conditions = _conditions(sources)
    reasons = incomparable(sources) or tuple(line for one in conditions for line in _unequal(one))
    if reasons:
        raise UsageError("\n  ".join(("these experiment directories cannot be compared:", *reasons)))
    rows: dict[tuple[str, str], Observation] = {}
    for condition in conditions:
        for _, history, name in condition.members:
            for row in rows_of(history):
                at = condition.name, row.replicate
                if row.group == name and (at not in rows or rows[at].value is None):
                    rows[at] = msgspec.structs.replace(row, group=condition.name, place=None)
    observations = Observations(
        source=", ".join(name for name, _ in sources), pair_column="replicate", rows=tuple(rows.values())
    )
    return observations, scale_of(sources[0][1].design)


def _declared(sources: Sequence[Source]) -> Iterator[str]:
    """Name the comparisons that each directory planned, and the command that shows their verdicts."""
    for source, history in sources:
        names = ", ".join(f"{one.a} and {one.b}" for one in history.design.comparisons)
        if not names:  # one group, which no plan compared
            continue
        yield f"{source} compared {names} by its own plan; `{shell_command('report', source)}` shows that verdict."


def _conditions(sources: Sequence[Source]) -> list[_Condition]:
    """Return the conditions, each named after its first group; if the name is taken, the directory is added to it."""
    found: list[_Condition] = []
    for source, history in sources:
        for group in history.plan.experiment.groups:
            known = next((one for one in found if one.settings == group.settings), None)
            if known is None:
                taken = any(one.name == group.name for one in found)
                name = f"{group.name} ({source})" if taken else group.name
                known = _Condition(name=name, settings=group.settings, members=[])
                found.append(known)
            known.members.append((source, history, group.name))
    return found


def _unequal(condition: _Condition) -> Iterator[str]:
    """Yield a line for each group whose records differ between sources that are comparable."""
    first, its_history, called = condition.members[0]
    runs = {run.ref.replicate: digests_of(run) for run in its_history.of_group(called)}
    for source, history, name in condition.members[1:]:
        for run in history.of_group(name):
            here = digests_of(run)
            there = runs.get(run.ref.replicate, {})
            where = next((place for place in here if place in there and here[place] != there[place]), None)
            if where is not None:
                yield (
                    f"{called} in {first} and {name} in {source} have equal settings and randomness, but "
                    f"different records, first in seed {run.ref.replicate}, {where}: another device or processor "
                    "can cause this"
                )
                break


def incomparable(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return a line for each setting or fact that should agree but differs, and for each flaw that prevents comparing.

    Settings of groups may differ, because the comparison is about them.
    """
    return (*differing(sources), *(line for source in sources for line in _unfit(*source)))


def differing(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a line for each fact that differs, as in "rng_seed: 0 in one; 1 in other"."""
    facts = {source: _facts(history) for source, history in sources}
    rewards = {source: _rewards(history) for source, history in sources}
    for key in dict.fromkeys(key for found in facts.values() for key in found):
        yield from _line(key, {name: found.get(key, "not recorded") for name, found in facts.items()})
    for key in dict.fromkeys(key for found in rewards.values() for key in found):  # only where it is used
        yield from _line(key, {name: found[key] for name, found in rewards.items() if key in found})


def _line(key: str, values: Mapping[str, str]) -> Iterator[str]:
    holders: dict[str, list[str]] = {}
    for name, value in values.items():
        holders.setdefault(value, []).append(name)
    if len(holders) > 1:
        yield f"{key}: " + "; ".join(f"{value} in {', '.join(names)}" for value, names in holders.items())


def _facts(history: History) -> dict[str, str]:
    """Return, by key and as text, the facts that must agree so that a replicate means the same in all directories."""
    experiment = history.plan.experiment
    started = history.started
    outcome = history.outcome
    found = {
        "rng_seed": str(experiment.rng_seed),
        "eval_episodes": str(experiment.eval_episodes),
        "outcome": f"{outcome.title} ({outcome.better} is better)",
        "margin": f"{history.design.margin:g}",
    }
    for key, text in circumstances_of(experiment).items():
        value = msgspec.json.decode(text)
        if isinstance(value, dict):
            found |= {f"{key}.{below}": as_text(one) for below, one in value.items()}
        else:
            found[key] = as_text(value)
    # Two commits may have equal sources; a journal without their hash has the commit only.
    state = "sources" if "sources" in started.code else "commit"
    found["code"] = f"{state} {started.code.get(state, 'unknown')}"
    return found | {f"version of {package}": version for package, version in started.versions.items()}


def _rewards(history: History) -> dict[str, str]:
    """Return the hashes of the user's reward functions, because a path does not identify their code."""
    specs = (spec for block in history.plan.blocks for spec in block.runs)
    return {f"source of {code.reference}": code.sha256 or "unknown" for spec in specs for code in spec.reward_code}


def _unfit(source: str, history: History) -> Iterator[str]:
    if history.plan.experiment.unpaired:
        yield f"unpaired: the groups of {source} share no randomness with each other or with other runs"
    yield from (
        f"audit of {source}: {finding.sentence}"
        for finding in facts_of(history, progress_of(history)).findings
        if finding.weight == "blocks" and finding.kind != "aliased"  # positions are never balanced across directories
    )
