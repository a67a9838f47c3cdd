"""The journals of all parts -> the answer over them: judged by the one plan, beside what the parts' audits found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from esper_ab.analysis.analyse import conditions
from esper_ab.analysis.audit import audit
from esper_ab.analysis.pairs import all_pairs, same_records, same_settings
from esper_ab.external.endpoints import Endpoints
from esper_ab.external.experiments import rows_of
from esper_ab.external.judge import AuditedTask, judge
from esper_ab.external.plan import ExternalPlan
from esper_ab.external.result import ExternalResult
from esper_ab.external.scored import with_profiles
from esper_ab.joint.directory import Joint, JointPart
from esper_ab.journal.begun import begun
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import holder
from esper_ab.live.status import state_of
from esper_ab.verdict.finding import Finding


@dataclass(frozen=True, kw_only=True)
class PartNow:
    """How far one part is."""

    part: JointPart
    state: str  # as `esper-ab status` says it; "planned" before its first run
    runs: int  # of the plan, with an endpoint
    of_runs: int


@dataclass(frozen=True, kw_only=True)
class JointResult:
    """Everything that is concluded over all parts."""

    name: str
    parts: tuple[PartNow, ...]
    judged: ExternalResult
    findings: tuple[tuple[str, Finding], ...]  # (part, finding), of every part's audit

    @property
    def complete(self) -> bool:
        """Whether every part has ended with all its runs."""
        return all(now.state == "finished" and now.runs == now.of_runs for now in self.parts)


def judge_directory(directory: Path, joint: Joint, plan: ExternalPlan, rng_seed: int | None = None) -> JointResult:
    """Judge what the parts below `directory` have recorded; a part without a journal has no runs yet.

    `rng_seed`: of the bootstraps; None: from the plan's digest.
    """
    histories, states = dict[str, History](), list[PartNow]()
    for part in joint.parts:
        planned = len(plan.groups) * len(plan.replicates)
        if not begun(directory / part.folder):
            states.append(PartNow(part=part, state="planned", runs=0, of_runs=planned))
            continue
        held = holder(directory / part.folder) is not None  # before reading, so that an end in between is seen
        history = histories[part.name] = load(directory / part.folder).history
        runs = [run for run in history.runs.values() if str(run.ref.replicate) in plan.replicates]
        done = sum(run.evaluation is not None for run in runs)
        states.append(PartNow(part=part, state=state_of(history, held=held), runs=done, of_runs=planned))
    folders = {part.name: directory / part.folder for part in joint.parts}
    rows = [row for name, one in histories.items() for row in rows_of(name, folders[name], one, plan.scales)]
    endpoints = Endpoints(source=str(directory), pair_column="replicate", rows=tuple(rows))
    known = {name: _known(history) for name, history in histories.items()}
    judged = with_profiles(judge(plan, endpoints, known, rng_seed), joint.scores)
    return JointResult(
        name=directory.name, parts=tuple(states), judged=judged,
        findings=tuple((name, finding) for name, one in known.items() for finding in one.findings),
    )


def _known(history: History) -> AuditedTask:
    """Return what a part's records say beside its endpoints."""
    pairs = all_pairs(history)
    return AuditedTask(
        findings=audit(history, pairs).findings, scope=conditions(history),
        same_records=frozenset((one.a, one.b) for one in pairs if same_records(history, one, pairs[one])),
        same_settings=frozenset((one.a, one.b) for one in pairs if same_settings(history, one)),
    )
