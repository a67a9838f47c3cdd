"""Find the kept runs that may stand for runs of a plan."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from esper_ab.contracts.messages import EpisodeFinished, Evaluated
from esper_ab.contracts.run_files import policy_of, reused_policy_of
from esper_ab.contracts.wording import listed
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.control.rules.validation import Rejected, milestone_of
from esper_ab.journal.events import AnyEvent, KeptGroup, ReferencesOpened, RunOffered
from esper_ab.kept_runs.conditions import differing
from esper_ab.kept_runs.eligible import eligible_groups
from esper_ab.kept_runs.entry import KeptRun
from esper_ab.kept_runs.folder import find_runs
from esper_ab.kept_runs.identity import key_of
from esper_ab.plan.estimate import Estimate
from esper_ab.plan.plan import Plan
from esper_ab.settings.references import References

if TYPE_CHECKING:
    from esper_ab.code_trees.sealing import SealedCode
    from esper_ab.contracts.machine import Machine

Candidates = dict[int, tuple[KeptRun, bytes]]  # kept runs of a group with their policies, by replicate


@dataclass(frozen=True, kw_only=True)
class Offers:
    """The kept runs for one plan, and what is recorded about them before the first run."""

    opened: ReferencesOpened
    runs: tuple[RunOffered, ...] = ()
    policies: dict[str, bytes] = field(default_factory=dict)  # of runs that may be reused, by file
    saved_s: float = 0.0  # estimate of the time that reused runs save

    @property
    def events(self) -> tuple[AnyEvent, ...]:
        return (self.opened, *self.runs)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups whose runs are kept."""
        return tuple(self.opened.groups)

    def reusable(self, group: str) -> list[RunOffered]:
        """Return the runs of a group that need not be trained."""
        return [run for run in self.runs if not run.check and run.run_name.rpartition("/")[0] == group]


def find_offers(
    plan: Plan,
    machine: Machine,
    cost: Estimate,
    code: SealedCode | None,
    references: References,
    unsealed: Sequence[Path],
) -> Offers:
    """Return the kept runs in the folder that may stand for runs of the plan.

    `code`: the sealed states of the code, if groups have one each; `unsealed`: folders and files that are none of it.
    """
    groups, refused = eligible_groups(plan, machine, code, unsealed)
    specs = {spec.ref.group_id: spec for spec in plan.blocks[0].runs}
    candidates_by_group = {}
    sentences = list(refused)
    for name, group in groups.items():
        candidates, other_conditions = _find(references.folder, specs[name], group, plan)
        if candidates:
            candidates_by_group[name] = candidates
        elif other_conditions:
            sentences.append(
                f"Kept runs of {name} are not reused: a seed does not repeat to the bit, and they were trained with "
                f"other {listed(other_conditions)}."
            )
    check_replicate = _check_replicate(groups, candidates_by_group)
    now = datetime.now(UTC)
    offers = []
    policies = {}
    for name, candidates in candidates_by_group.items():
        for replicate, (run, policy) in candidates.items():
            is_check = groups[name].repeats and replicate == check_replicate
            offer = _offer(run, f"{name}/{replicate}", groups[name], now, is_check=is_check)
            offers.append(offer)
            if not is_check:
                policies[reused_policy_of(f"{name}/{replicate}")] = policy
    opened = ReferencesOpened(
        folder=str(references.folder),
        limit_bytes=references.limit_bytes,
        opened_at=now.isoformat(timespec="seconds"),
        groups=groups,
        refused=tuple(sentences),
    )
    planned_names = {spec.ref.name for block in plan.blocks for spec in block.runs}
    reused_share = sum(not offer.check and offer.run_name in planned_names for offer in offers) / len(planned_names)
    saved_s = (cost.duration_s - cost.start_up_s) * reused_share
    return Offers(opened=opened, runs=tuple(offers), policies=policies, saved_s=saved_s)


def _find(folder: Path, spec: RunSpec, group: KeptGroup, plan: Plan) -> tuple[Candidates, tuple[str, ...]]:
    """Return the kept runs of a group, all made by the same files of the user's.

    Runs that do not repeat to the bit are only taken if their conditions are those of now. If there are others, the
    names of the conditions that differ are returned, too.
    """
    other_conditions: tuple[str, ...] = ()
    candidates_by_witness: dict[str, Candidates] = {}
    for replicate in _replicates(plan):
        has_any = False
        for run, policy in find_runs(folder, key_of(group.identity, replicate)):
            if run.repeats != group.repeats or not _fits(run, _placed(spec, replicate), plan):
                continue
            names = differing(run.conditions, group.conditions)
            if names and not group.repeats:
                other_conditions = names
                continue
            has_any = True
            candidates = candidates_by_witness.setdefault(run.witness if group.repeats else "", {})
            if replicate not in candidates or not names:
                candidates[replicate] = (run, policy)
        if not has_any and replicate >= len(plan.blocks):
            break
    if not candidates_by_witness:
        return {}, other_conditions
    return max(candidates_by_witness.values(), key=lambda candidates: _preference(candidates, group)), ()


def _preference(candidates: Candidates, group: KeptGroup) -> tuple[bool, int, str]:
    """Order the runs of different files: those under the conditions of now, those of first seeds, then the newest."""
    as_now = any(run.conditions == group.conditions for run, _ in candidates.values())
    return as_now, -min(candidates), max(run.trained_at for run, _ in candidates.values())


def _replicates(plan: Plan) -> Iterator[int]:
    """Yield the replicates of the plan, and those that may be added to one without a maximum."""
    replicates = range(len(plan.blocks))
    return itertools.count() if plan.experiment.open_ended else iter(replicates)


def _placed(template: RunSpec, replicate: int) -> RunSpec:
    ref = msgspec.structs.replace(template.ref, name=f"{template.ref.group_id}/{replicate}", replicate=replicate)
    return msgspec.structs.replace(template, ref=ref, policy_file=policy_of(ref))


def _fits(run: KeptRun, spec: RunSpec, plan: Plan) -> bool:
    """Return whether the records are those that a worker might report for the run `spec`."""
    measures = plan.design.measures
    if len(run.episodes) != spec.episodes:
        return False
    try:
        for episode, record in enumerate(run.episodes):
            own_record = msgspec.structs.replace(record, run=spec.ref)
            report = EpisodeFinished(run=spec.ref, record=own_record, checkpoint=None)
            if milestone_of(report, spec, measures) != episode + 1:
                return False
        evaluation = msgspec.structs.replace(run.evaluation, run=spec.ref, policy_file=spec.policy_file)
        milestone_of(Evaluated(run=spec.ref, record=evaluation), spec, measures)
    except Rejected:
        return False
    return True


def _check_replicate(groups: Mapping[str, KeptGroup], candidates_by_group: dict[str, Candidates]) -> int | None:
    """Choose the seed whose runs are trained again; None if no group repeats that has kept runs.

    Groups that repeat are left out if they have no kept run of that seed, or none beside it.
    """
    repeating_groups = [name for name in candidates_by_group if groups[name].repeats]
    for name in repeating_groups:
        if len(candidates_by_group[name]) == 1:
            del candidates_by_group[name]
    first_seeds = {name: min(candidates_by_group[name]) for name in repeating_groups if name in candidates_by_group}
    check_replicate = min(first_seeds.values(), default=None)
    for name, first_seed in first_seeds.items():
        if first_seed != check_replicate:
            del candidates_by_group[name]
    return check_replicate


def _offer(run: KeptRun, name: str, group: KeptGroup, now: datetime, *, is_check: bool) -> RunOffered:
    return RunOffered(
        run_name=name,
        source=run.source,
        trained_at=run.trained_at,
        age_s=round((now - datetime.fromisoformat(run.trained_at)).total_seconds()),
        check=is_check,
        other_conditions=differing(run.conditions, group.conditions),
        episodes=run.episodes,
        evaluation=run.evaluation,
    )
