"""Goldens of experiments: plan, observations and answer as plain JSON, without a journal.

    plan           groups, cells, comparisons and the declared design; for tables also the arguments of the plan
    observations   a table: one row per run that ended
    facts          facts about each comparison that need records, and the findings of the audit
    records        digests of the records; for experiments only
    answer         words and numbers of every verdict, floats to nine digits; no digest of a plan, no date, no path

`replay` judges the stored plan and observations again; scripts/goldens runs the experiments again.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.analysis.analyse import analyse, conditions, facts_of
from esper_ab.analysis.observe import progress_of, rows_of
from esper_ab.contracts.errors import EsperError
from esper_ab.design.design import Design
from esper_ab.journal.begun import begun
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.load import load
from esper_ab.journal.outcomes import outcome_of
from esper_ab.readers.external_plan import read_plan
from esper_ab.readers.external_table import observations_of
from esper_ab.readers.joint import judge_directory
from esper_ab.readers.joint_directory import PLAN_NAME, read_joint
from esper_ab.report.content import content
from esper_ab.report.external import external_document
from esper_ab.report.verdict_json import comparison_json, render_verdict
from esper_ab.verdict.analysis_plan import AnalysisPlan, Rule
from esper_ab.verdict.answer import Answer, with_profiles
from esper_ab.verdict.drift import DRIFT
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.judge import judge
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Facts, Observations
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import Scale
from support.goldens.golden_json import plain, rounded

SEED = 38  # of every bootstrap
COLUMNS = ("group", "cell", "pair", "run", "item", "value", "status", "place", "cluster", "came")
_OURS = {"cell": "task", "value": "outcome", "came": "order"}  # column here -> column of a table of outcomes
# Keys of verdict.json that belong to the answer; the others are costs, paths and versions.
_ANSWER_KEYS = ("estimand", "rule", "state", "complete", "comparisons", "cross", "looks", "reward_audit")
# Keys of a comparison that the golden has among its observations, or among the caveats.
_KEPT_ELSEWHERE = ("pairs", "samples", "warnings")


# --- goldens of results ---


def experiment_golden(directory: Path) -> dict[str, Any]:
    """Return the golden of an experiment directory."""
    history = load(directory).history
    analysis = analyse(history, SEED)
    document = json.loads(render_verdict(replace(content(history, held=False, place="EXPERIMENT"), analysis=analysis)))
    (document["reward_audit"] or {}).pop("digest", None)  # of all sources: another at every commit
    experiment = history.plan.experiment
    facts = facts_of(history, progress_of(history))
    outcome_measure = msgspec.structs.replace(history.design.measures, measures=())
    design = msgspec.structs.replace(history.design, measures=outcome_measure)
    return {
        "kind": "experiment",
        "plan": {
            "groups": list(history.groups),
            "cells": [""],
            "untested": list(experiment.untested),
            "planned": history.replicates,
            "paired": not experiment.unpaired,
            "run_sd": history.plan.run_sd,
            "scope": conditions(history),
            "design": msgspec.to_builtins(design),
            "orders": [[spec.ref.group_id for spec in block.runs] for block in history.blocks],
        },
        "observations": _table(_runs(history)),
        "facts": {
            "findings": msgspec.to_builtins(facts.findings),
            "same_records": sorted(facts.same_records),
            "same_settings": sorted(facts.same_settings),
        },
        "records": _records(history),
        "answer": rounded(
            {key: document[key] for key in _ANSWER_KEYS} | {"comparisons": _slim(document["comparisons"])}
        ),
    }


def joint_golden(directory: Path) -> dict[str, Any]:
    """Return the golden of a joint experiment, which contains the goldens of its parts."""
    joint_experiment = read_joint(directory)
    plan = read_plan(directory / PLAN_NAME)
    result = judge_directory(directory, joint_experiment, plan, SEED)
    folders = {part.name: directory / part.folder for part in joint_experiment.parts if begun(directory / part.folder)}
    parts = {name: experiment_golden(folder) for name, folder in folders.items()}
    histories = {name: load(folder).history for name, folder in folders.items()}
    facts = {name: facts_of(history, progress_of(history)) for name, history in histories.items()}
    rows = [row for name, part_history in histories.items() for row in rows_of(part_history, name)]
    return {
        "kind": "joint",
        "plan": _planned(plan, source="JOINT", pair_column="replicate") | {"scores": joint_experiment.scores},
        "observations": _table(map(_row, rows)),
        "facts": _facts_by_task(facts),
        "answer": _external(result.judged) | {"complete": result.complete},
        "parts": parts,
    }


def planned_table_golden(plan: AnalysisPlan, outcomes: Observations) -> dict[str, Any]:
    """Return the golden of a table that is judged by a plan."""
    return {
        "kind": "planned table",
        "plan": _planned(plan, source=outcomes.source, pair_column=outcomes.pair_column),
        "observations": _table(map(_row, outcomes.rows)),
        **({"facts": _facts_by_task(outcomes.facts)} if outcomes.facts is not None else {}),
        "answer": _external(judge(plan, outcomes, rng_seed=SEED)),
    }


def _facts_by_task(facts: Mapping[str, Facts]) -> dict[str, Any]:
    return {
        name: {
            "findings": msgspec.to_builtins(facts_of_task.findings),
            "scope": facts_of_task.scope,
            "same_records": sorted(facts_of_task.same_records),
            "same_settings": sorted(facts_of_task.same_settings),
        }
        for name, facts_of_task in facts.items()
    }


# --- judging a golden again ---


def replay(golden: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Judge the stored observations of a golden and of its parts again; yield (name, stored answer, new answer)."""
    kind = golden["kind"]
    if kind in ("experiment", "joint", "planned table"):
        judged_answer = judge(*plan_and_observations(golden), rng_seed=SEED)
    match kind:
        case "experiment":
            comparisons = plain([comparison_json(comparison) for comparison in judged_answer.comparisons])
            yield "comparisons", golden["answer"]["comparisons"], rounded(_slim(comparisons))
        case "joint":
            scores = {name: tuple(score_range) for name, score_range in golden["plan"]["scores"].items()}
            answer = {key: value for key, value in golden["answer"].items() if key != "complete"}
            yield "joint", answer, _external(with_profiles(judged_answer, scores))
            for name, part in golden["parts"].items():
                yield from (
                    (f"{name}: {part_name}", stored, comparisons) for part_name, stored, comparisons in replay(part)
                )
        case "planned table":
            yield "answer", golden["answer"], _external(judged_answer)
        case "table":
            yield "answer", golden["answer"], _explored(golden)
        case "refused":
            yield "answer", golden["answer"], _refused(golden)


def rejudged(golden: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored golden, and those of the parts of a joint experiment, with the answer that `judge` gives now."""
    (_, _, answer), *_ = replay(golden)
    if golden["kind"] == "experiment":
        return {**golden, "answer": {**golden["answer"], "comparisons": plain(answer)}}
    if golden["kind"] == "joint":
        parts = {name: rejudged(part) for name, part in golden["parts"].items()}
        complete_counts = {key: value for key, value in golden["answer"].items() if key == "complete"}
        return {**golden, "answer": {**plain(answer), **complete_counts}, "parts": parts}
    return {**golden, "answer": plain(answer)}


def plan_and_observations(golden: Mapping[str, Any]) -> tuple[AnalysisPlan, Observations]:
    """Return plan and observations of an experiment, a joint experiment or a planned table."""
    plan = golden["plan"]
    if golden["kind"] == "planned table" and "facts" not in golden:
        return _plan_of(plan), _outcomes_of(golden)
    if golden["kind"] != "experiment":
        facts = {name: _facts(golden_facts) for name, golden_facts in golden["facts"].items()}
        observations = Observations(source=plan["source"], pair_column="replicate", rows=_observed(golden), facts=facts)
        return _plan_of(plan), observations
    design = msgspec.convert(plan["design"], Design)
    scale = Scale(task="", outcome=design.outcome, margin=design.margin, worst=design.worst)
    replicates = tuple(map(str, range(plan["planned"])))
    analysis_plan = AnalysisPlan(groups=tuple(plan["groups"]), replicates=replicates, scales=(scale,), design=design)
    facts_of_experiment = _facts(
        {**golden["facts"], "scope": plan["scope"], "paired": plan["paired"], "run_sd": plan["run_sd"]}
    )
    return analysis_plan, Observations(
        source="", pair_column="replicate", rows=_observed(golden), facts={"": facts_of_experiment}, repeatable=True
    )


def _facts(golden_facts: Mapping[str, Any]) -> Facts:
    """Return the facts that need records. Drift is not among them, because it follows from the outcomes."""
    findings = msgspec.convert(golden_facts["findings"], tuple[Finding, ...])
    return Facts(
        scope=golden_facts["scope"],
        findings=tuple(finding for finding in findings if finding.kind != DRIFT),
        same_records=frozenset(map(tuple, golden_facts["same_records"])),
        paired=golden_facts.get("paired", True),
        same_settings=frozenset(map(tuple, golden_facts["same_settings"])),
        run_sd=golden_facts.get("run_sd"),
    )


def _observed(golden: Mapping[str, Any]) -> Runs:
    return Runs.of(
        Observation(
            group=row["group"],
            replicate=row["pair"],
            task=row["cell"] or "",
            cluster=row["cluster"] or "",
            value=row["value"],
            row=number,
            cancelled=row["status"] == "cancelled",
            place=row["place"],
        )
        for number, row in enumerate(_rows(golden))
    )


def _explored(golden: Mapping[str, Any]) -> dict[str, Any]:
    plan = golden["plan"]
    scales = msgspec.convert(plan["scales"], tuple[Scale, ...])
    rule = Rule(control=plan["control"], alpha=plan["alpha"])
    try:
        answer = explore(
            _outcomes_of(golden), scales, rule, paired=plan.get("paired"), rows=plan.get("rows"), rng_seed=SEED
        )
    except EsperError as error:
        return {"refused": str(error)}
    return _external(with_profiles(answer, {name: tuple(score_range) for name, score_range in plan["scores"].items()}))


def _refused(golden: Mapping[str, Any]) -> dict[str, Any]:
    try:
        _outcomes_of(golden)
    except EsperError as error:
        return {"refused": str(error)}
    return {"refused": ""}


def _plan_of(plan: Mapping[str, Any]) -> AnalysisPlan:
    return msgspec.convert(
        {key: plan[key] for key in ("groups", "replicates", "scales", "design", "cells", "choosing")}, AnalysisPlan
    )


def _outcomes_of(golden: Mapping[str, Any]) -> Observations:
    """Build observations from columns, as from a data frame."""
    plan = golden["plan"]
    rows = _rows(golden)
    column_names = [
        name for name in COLUMNS if any(row[name] is not None for row in rows) and name not in ("item", "status")
    ]
    names = {"pair": plan["pair_column"]} | _OURS
    columns = {names.get(name, name): [row[name] for row in rows] for name in column_names if name != "place"}
    return observations_of(plan["source"], columns, range(2, 2 + len(rows)))


# --- observations ---


def _runs(history: History) -> Iterator[dict[str, Any]]:
    """Yield a row for each run that finished or was lost."""
    ended_runs = [run for run in history.runs.values() if run.evaluation is not None or run.lost]
    for block in history.blocks:
        for place, spec in enumerate(block.runs):
            run = history.runs[spec.ref.name]
            if run in ended_runs:
                yield {
                    "group": spec.ref.group_id,
                    "pair": str(block.replicate),
                    "place": place,
                    "status": _status(run),
                    "value": outcome_of(run, history.design.outcome_over),
                }


def _status(run: RunHistory) -> str:
    return "ok" if not run.lost else "failed" if run.failed else "cancelled"


def _row(row: Observation) -> dict[str, Any]:
    failed_status = "cancelled" if row.cancelled else "failed"
    return {
        "group": row.group,
        "cell": row.task or None,
        "pair": row.replicate if row.replicate != row.run else None,
        "run": row.run or None,
        "value": row.value,
        "status": "ok" if row.value is not None else failed_status,
        "cluster": row.cluster or None,
        "came": row.order,
    }


def _table(rows: Iterator[dict[str, Any]]) -> dict[str, Any]:
    row_list = list(rows)
    column_names = [name for name in COLUMNS if any(row.get(name) is not None for row in row_list)]
    return {"columns": column_names, "rows": [[row.get(name) for name in column_names] for row in row_list]}


def _rows(golden: Mapping[str, Any]) -> list[dict[str, Any]]:
    observations = golden["observations"]
    empty_row = dict.fromkeys(COLUMNS)
    return [empty_row | dict(zip(observations["columns"], row, strict=True)) for row in observations["rows"]]


def _planned(plan: AnalysisPlan, *, source: str, pair_column: str) -> dict[str, Any]:
    return {"source": source, "pair_column": pair_column, **plain(plan)}


def _records(history: History) -> dict[str, Any]:
    """Return two digests of each run: one of its records, and one of its outcomes without the names of fields."""
    return {
        "runs": {
            name: [_short(_digests_of_run(run)), _short([repr(value) for value in run.columns.of("outcome")])]
            for name, run in history.runs.items()
            if run.recorded >= 0
        },
    }


def _digests_of_run(run: RunHistory) -> list[str]:
    """Return the digests of a run's records, without its policy file, which changes with every field of a plan."""
    return [*run.columns.digests, *([] if run.evaluation is None else [run.evaluation.digest])]


def _short(digests: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]


# --- answers ---


def _external(result: Answer) -> dict[str, Any]:
    document = plain(external_document(result))
    kept_values = {key: document[key] for key in document if key not in ("schema", "plan", "source", "scales")}
    rounded_document = rounded(kept_values | {"comparisons": _slim(document["comparisons"])})
    return json.loads(json.dumps(rounded_document).replace(result.observations.source, "SOURCE"))


def _slim(comparisons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    slim_comparisons = [
        {key: value for key, value in comparison.items() if key not in _KEPT_ELSEWHERE} for comparison in comparisons
    ]
    return [
        comparison
        | {
            "lost": len(comparison["lost"]["replicates"]),
            "findings": [finding["kind"] for finding in comparison["findings"]],
        }
        for comparison in slim_comparisons
    ]
