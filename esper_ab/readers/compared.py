"""Compare the groups of several experiment directories, of which groups of equal treatments are one condition.

A random number's address has the rng seed and the replicate, never a group or an experiment. So groups of equal
treatments must have equal records wherever they ran, and groups of different ones form pairs by replicate. The
result is exploratory: whatever else differed between the directories was not balanced, and nothing was declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from esper_ab.analysis.observe import digests_of, rows_of, scale_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.trainer import is_command
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.readers.agreement import Source, incomparable
from esper_ab.readers.command_code import command_code
from esper_ab.settings.circumstances import TRAINER_SOURCE, Treatment, treatment_of
from esper_ab.settings.differences import flat
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.answer import Answer
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import Scale

_STATES_OF_CODE = "to compare states of the code, declare one per group: launch --code base=COMMIT --code head=."


@dataclass(frozen=True, kw_only=True)
class _Condition:
    """Groups of equal treatments, over all directories."""

    name: str
    treatment: Treatment
    members: list[tuple[str, History, str]]  # directory name, history, and the group's name there


def read_sources(folders: Sequence[Path]) -> list[Source]:
    """Load the journals of several experiment directories. Raises UsageError if there are not at least two of them."""
    refuse_few(folders)
    return [(str(folder), load(folder).history) for folder in folders]


def refuse_few(folders: Sequence[Path]) -> None:
    """Raise UsageError if there are not at least two experiment directories, or if one comes twice."""
    if len(folders) < 2:
        report = shell_command("report", folders[0])
        raise UsageError(f"compare needs at least two experiment directories; `{report}` reports on one")
    seen_folders: dict[Path, Path] = {}
    for folder in folders:
        if (first_folder := seen_folders.setdefault(folder.resolve(), folder)) is not folder:
            raise UsageError(f"{first_folder} and {folder} are the same experiment directory")


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
    reasons = list(incomparable(sources))
    if not reasons:
        for condition in conditions:
            reasons += _unequal(condition)
    if reasons:
        advice = [_STATES_OF_CODE] if any(reason.startswith(f"{TRAINER_SOURCE}:") for reason in reasons) else []
        raise UsageError("\n  ".join(("these experiment directories cannot be compared:", *reasons, *advice)))
    rows: dict[tuple[str, str], Observation] = {}
    for condition in conditions:
        for _, history, name in condition.members:
            for row in rows_of(history):
                key = (condition.name, row.replicate)
                if row.group == name and (key not in rows or rows[key].value is None):
                    rows[key] = msgspec.structs.replace(row, group=condition.name, place=None)
    observations = Observations(
        source=", ".join(name for name, _ in sources),
        pair_column="replicate",
        rows=Runs.of(rows.values()),
        reading=(*_other_code(sources), *_confounders(sources)),
    )
    return observations, scale_of(sources[0][1].design)


def _other_code(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a sentence on the code of commands if it differs, or if it may differ."""
    code = command_code({source: (history,) for source, history in sources})
    if not code.same:
        yield code.sentence


def _confounders(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a sentence on each setting that an experiment with several groups has in all of them, and others do not."""
    if all(len(history.groups) == 1 for _, history in sources):
        return
    tables = {source: [flat(group) for group in history.plan.experiment.groups] for source, history in sources}
    for key in next(iter(tables.values()))[0]:
        values = {source: {table.get(key, "") for table in own_tables} for source, own_tables in tables.items()}
        if all(len(own_values) == 1 for own_values in values.values()) and len(set.union(*values.values())) > 1:
            listed_values = "; ".join(f"{own_values.pop()} in {source}" for source, own_values in values.items())
            yield f"Groups of different experiments differ in {key} as well, whatever their names: {listed_values}."


def _declared(sources: Sequence[Source]) -> Iterator[str]:
    """Name the comparisons that each directory planned, and the command that shows their verdicts."""
    for source, history in sources:
        names = ", ".join(f"{contrast.a} and {contrast.b}" for contrast in history.design.comparisons)
        if not names:  # one group, which no plan compared
            continue
        yield f"{source} compared {names} by its own plan; `{shell_command('report', source)}` shows that verdict."


def _conditions(sources: Sequence[Source]) -> list[_Condition]:
    """Return the conditions, each named after its first group; if the name is taken, the directory is added to it."""
    conditions: list[_Condition] = []
    for source, history in sources:
        experiment = history.plan.experiment
        for group in experiment.groups:
            treatment = treatment_of(experiment, group)
            condition = next(
                (known_condition for known_condition in conditions if known_condition.treatment == treatment), None
            )
            if condition is None:
                name = group.name
                if any(known_condition.name == name for known_condition in conditions):
                    name = f"{name} ({source})"
                condition = _Condition(name=name, treatment=treatment, members=[])
                conditions.append(condition)
            condition.members.append((source, history, group.name))
    return conditions


def _unequal(condition: _Condition) -> Iterator[str]:
    """Yield a line for each group whose records differ between sources that are comparable."""
    first_source, first_history, first_group = condition.members[0]
    digests_by_replicate = {run.ref.replicate: digests_of(run) for run in first_history.of_group(first_group)}
    for source, history, group in condition.members[1:]:
        for run in history.of_group(group):
            difference = _first_difference(digests_by_replicate.get(run.ref.replicate, {}), digests_of(run))
            if difference:
                yield (
                    f"{first_group} in {first_source} and {group} in {source} have equal settings and randomness, but "
                    f"different records, first in seed {run.ref.replicate}, {difference}: {_causes(history)} can cause "
                    "this"
                )
                break


def _causes(history: History) -> str:
    """Name what can differ between runs whose recorded settings and code are equal."""
    trainer = history.plan.experiment.trainer
    if not trainer:
        return "another device or processor"
    files = "a file that the command imports or reads" if is_command(trainer) else "a file that it reads"
    return f"{files}, or another device or processor,"


def _first_difference(expected: Mapping[str, str], digests: Mapping[str, str]) -> str:
    """Return the first record with different digests, of those that both runs have; "" if there is none."""
    for record, digest in digests.items():
        if expected.get(record, digest) != digest:
            return record
    return ""
