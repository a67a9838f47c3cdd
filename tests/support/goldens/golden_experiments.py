"""Goldens of experiments: plan, observations and answer as plain JSON, without a journal.

    plan           groups, cells, comparisons and the design that was declared; of tables the arguments of the plan, too
    observations   a table: one row per run that came to an end
    facts          what records alone can tell of each comparison, and the findings of the audit
    records        digests of what was recorded; only of experiments
    answer         words and numbers of every verdict, floats to nine digits; no digest of a plan, no date, no path

`replay` judges plan and observations again. scripts/goldens makes experiments anew, from the first run on.
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
from esper_ab.verdict.observations import Facts, Observation, Observations
from esper_ab.verdict.scale import Scale
from support.goldens.golden_json import plain, rounded

SEED = 38  # of every bootstrap
COLUMNS = ("group", "cell", "pair", "run", "item", "value", "status", "place", "cluster", "came")
_OURS = {"cell": "task", "value": "outcome", "came": "order"}  # column here -> column of a table of outcomes
# Parts of verdict.json that say what came out; the others are costs, addresses and versions.
_SAID = ("estimand", "rule", "state", "complete", "comparisons", "cross", "looks", "reward_audit")
# Of a comparison: those are among the observations, or among its caveats.
_SEEN_ELSEWHERE = ("pairs", "samples", "warnings")


# --- what came out -------------------------------------------------------------------------------------------------


def experiment_golden(directory: Path) -> dict[str, Any]:
    """Golden of one experiment directory."""
    history = load(directory).history
    analysis = analyse(history, SEED)
    told = json.loads(render_verdict(replace(content(history, held=False, place="EXPERIMENT"), analysis=analysis)))
    (told["reward_audit"] or {}).pop("digest", None)  # of all sources: another at every commit
    experiment = history.plan.experiment
    known = facts_of(history, progress_of(history))
    outcome_alone = msgspec.structs.replace(history.design.measures, measures=())
    design = msgspec.structs.replace(history.design, measures=outcome_alone)
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
            "findings": msgspec.to_builtins(known.findings),
            "same_records": sorted(known.same_records),
            "same_settings": sorted(known.same_settings),
        },
        "records": _records(history),
        "answer": rounded({key: told[key] for key in _SAID} | {"comparisons": _slim(told["comparisons"])}),
    }


def joint_golden(directory: Path) -> dict[str, Any]:
    """Golden of a joint experiment, with one of each part."""
    joint = read_joint(directory)
    plan = read_plan(directory / PLAN_NAME)
    result = judge_directory(directory, joint, plan, SEED)
    folders = {part.name: directory / part.folder for part in joint.parts if begun(directory / part.folder)}
    parts = {name: experiment_golden(folder) for name, folder in folders.items()}
    histories = {name: load(folder).history for name, folder in folders.items()}
    known = {name: facts_of(history, progress_of(history)) for name, history in histories.items()}
    rows = [row for name, one in histories.items() for row in rows_of(one, name)]
    return {
        "kind": "joint",
        "plan": _planned(plan, source="JOINT", pair_column="replicate") | {"scores": joint.scores},
        "observations": _table(map(_row, rows)),
        "facts": _told_facts(known),
        "answer": _external(result.judged) | {"complete": result.complete},
        "parts": parts,
    }


def planned_table_golden(plan: AnalysisPlan, outcomes: Observations) -> dict[str, Any]:
    """The golden of a table that is judged by a plan."""
    return {
        "kind": "planned table",
        "plan": _planned(plan, source=outcomes.source, pair_column=outcomes.pair_column),
        "observations": _table(map(_row, outcomes.rows)),
        **({"facts": _told_facts(outcomes.facts)} if outcomes.facts is not None else {}),
        "answer": _external(judge(plan, outcomes, rng_seed=SEED)),
    }


def _told_facts(known: Mapping[str, Facts]) -> dict[str, Any]:
    return {
        name: {
            "findings": msgspec.to_builtins(one.findings),
            "scope": one.scope,
            "same_records": sorted(one.same_records),
            "same_settings": sorted(one.same_settings),
        }
        for name, one in known.items()
    }


# --- judged again --------------------------------------------------------------------------------------------------


def replay(golden: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (name, stored answer, present answer) for a golden and its parts, from the same observations."""
    kind = golden["kind"]
    if kind in ("experiment", "joint", "planned table"):
        judged = judge(*plan_and_observations(golden), rng_seed=SEED)
    match kind:
        case "experiment":
            found = plain([comparison_json(one) for one in judged.comparisons])
            yield "comparisons", golden["answer"]["comparisons"], rounded(_slim(found))
        case "joint":
            scores = {name: tuple(ends) for name, ends in golden["plan"]["scores"].items()}
            answer = {key: value for key, value in golden["answer"].items() if key != "complete"}
            yield "joint", answer, _external(with_profiles(judged, scores))
            for name, part in golden["parts"].items():
                yield from ((f"{name}: {what}", stored, found) for what, stored, found in replay(part))
        case "planned table":
            yield "answer", golden["answer"], _external(judged)
        case "table":
            yield "answer", golden["answer"], _explored(golden)
        case "refused":
            yield "answer", golden["answer"], _refused(golden)


def rejudged(golden: Mapping[str, Any]) -> dict[str, Any]:
    """Return the golden of a table with the answer that `judge` gives now."""
    ((_, _, answer),) = replay(golden)
    return {**golden, "answer": plain(answer)}


def plan_and_observations(golden: Mapping[str, Any]) -> tuple[AnalysisPlan, Observations]:
    """The plan and the observations of an experiment, a joint one or a table that is held to a plan."""
    plan = golden["plan"]
    if golden["kind"] == "planned table" and "facts" not in golden:
        return _plan_of(plan), _outcomes_of(golden)
    if golden["kind"] != "experiment":
        facts = {name: _facts(told) for name, told in golden["facts"].items()}
        seen = Observations(source=plan["source"], pair_column="replicate", rows=_observed(golden), facts=facts)
        return _plan_of(plan), seen
    design = msgspec.convert(plan["design"], Design)
    scale = Scale(task="", outcome=design.outcome, margin=design.margin, worst=design.worst)
    replicates = tuple(map(str, range(plan["planned"])))
    promised = AnalysisPlan(groups=tuple(plan["groups"]), replicates=replicates, scales=(scale,), design=design)
    known = _facts({**golden["facts"], "scope": plan["scope"], "paired": plan["paired"], "run_sd": plan["run_sd"]})
    return promised, Observations(
        source="", pair_column="replicate", rows=_observed(golden), facts={"": known}, repeatable=True
    )


def _facts(told: Mapping[str, Any]) -> Facts:
    """The facts of a golden that need records; drift is found in the outcomes themselves."""
    findings = msgspec.convert(told["findings"], tuple[Finding, ...])
    return Facts(
        scope=told["scope"],
        findings=tuple(one for one in findings if one.kind != DRIFT),
        same_records=frozenset(map(tuple, told["same_records"])),
        paired=told.get("paired", True),
        same_settings=frozenset(map(tuple, told["same_settings"])),
        run_sd=told.get("run_sd"),
    )


def _observed(golden: Mapping[str, Any]) -> tuple[Observation, ...]:
    return tuple(
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
        found = explore(
            _outcomes_of(golden), scales, rule, paired=plan.get("paired"), rows=plan.get("rows"), rng_seed=SEED
        )
    except EsperError as error:
        return {"refused": str(error)}
    return _external(with_profiles(found, {name: tuple(ends) for name, ends in plan["scores"].items()}))


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
    """Build the table from columns, as from a data frame."""
    plan = golden["plan"]
    rows = _rows(golden)
    used = [name for name in COLUMNS if any(row[name] is not None for row in rows) and name not in ("item", "status")]
    names = {"pair": plan["pair_column"]} | _OURS
    columns = {names.get(name, name): [row[name] for row in rows] for name in used if name != "place"}
    return observations_of(plan["source"], columns, range(2, 2 + len(rows)))


# --- what was seen -------------------------------------------------------------------------------------------------


def _runs(history: History) -> Iterator[dict[str, Any]]:
    """A row per run that came to an end; a run that was never needed, or is still to come, has none."""
    ended = [run for run in history.runs.values() if run.evaluation is not None or run.lost]
    for block in history.blocks:
        for place, spec in enumerate(block.runs):
            run = history.runs[spec.ref.name]
            if run in ended:
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
    lost = "cancelled" if row.cancelled else "failed"
    return {
        "group": row.group,
        "cell": row.task or None,
        "pair": row.replicate if row.replicate != row.run else None,
        "run": row.run or None,
        "value": row.value,
        "status": "ok" if row.value is not None else lost,
        "cluster": row.cluster or None,
        "came": row.order,
    }


def _table(rows: Iterator[dict[str, Any]]) -> dict[str, Any]:
    listed = list(rows)
    used = [name for name in COLUMNS if any(row.get(name) is not None for row in listed)]
    return {"columns": used, "rows": [[row.get(name) for name in used] for row in listed]}


def _rows(golden: Mapping[str, Any]) -> list[dict[str, Any]]:
    seen = golden["observations"]
    empty = dict.fromkeys(COLUMNS)
    return [empty | dict(zip(seen["columns"], row, strict=True)) for row in seen["rows"]]


def _planned(plan: AnalysisPlan, *, source: str, pair_column: str) -> dict[str, Any]:
    return {"source": source, "pair_column": pair_column, **plain(plan)}


def _records(history: History) -> dict[str, Any]:
    """Per run a digest of its records, and one of its numbers alone, whatever fields are called."""
    return {
        "runs": {
            name: [_short(_words(run)), _short([repr(value) for value in run.columns.of("outcome")])]
            for name, run in history.runs.items()
            if run.recorded >= 0
        },
    }


def _words(run: RunHistory) -> list[str]:
    """Without the policy's file: it names the plan by a digest that moves with each field."""
    return [*run.columns.digests, *([] if run.evaluation is None else [run.evaluation.digest])]


def _short(words: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]


# --- what was said -------------------------------------------------------------------------------------------------


def _external(result: Answer) -> dict[str, Any]:
    told = plain(external_document(result))
    shown = {key: told[key] for key in told if key not in ("schema", "plan", "source", "scales")}
    words = rounded(shown | {"comparisons": _slim(told["comparisons"])})
    return json.loads(json.dumps(words).replace(result.observations.source, "SOURCE"))


def _slim(comparisons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    slim = [{key: value for key, value in one.items() if key not in _SEEN_ELSEWHERE} for one in comparisons]
    return [
        one | {"lost": len(one["lost"]["replicates"]), "findings": [finding["kind"] for finding in one["findings"]]}
        for one in slim
    ]
