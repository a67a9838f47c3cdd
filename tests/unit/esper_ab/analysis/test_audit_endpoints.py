"""Endpoints that are no numbers block their group; differences that drift cap a claim."""

from __future__ import annotations

import math

import msgspec
import pytest
from support.audited import findings, found
from support.journals import planted_effect

from esper_ab.analysis.analyse import analyse
from esper_ab.journal.events import RunEvaluated
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.verdict_json import render_verdict
from esper_ab.verdict.word import Verdict

replace = msgspec.structs.replace


def evaluated(events, change):
    """The journal with the accuracy of every evaluation host replaced by `change(run, accuracy)`."""

    def changed(run, host):
        accuracy = change(run, host.outcome.outcome)
        return replace(host, outcome=replace(host.outcome, outcome=accuracy))

    def of(record):
        return replace(record, hosts=tuple(changed(record.run, host) for host in record.hosts))

    return [
        RunEvaluated(record=of(event.record)) if isinstance(event, RunEvaluated) else event for event in events
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_endpoint_that_is_no_number_is_a_finding_and_no_error(value):
    events = evaluated(planted_effect(), lambda run, seen: value if run.name == "shaped/3" else seen)
    sentence = found(events)["endpoint", "blocks", ("shaped",)]
    assert sentence == "The endpoint of shaped/3 is no finite number: the record is damaged or foreign."
    history = fold(events)
    (result,) = analyse(history).comparisons
    assert (result.verdict, len(result.pairs)) == (Verdict.BLOCKED, 5)
    verdict = msgspec.json.decode(render_verdict(content(history)))
    assert [run["run"]["name"] for run in verdict["runs"] if run["endpoint"] is None] == ["shaped/3"]


def test_a_group_that_gets_better_with_every_replicate_is_not_called_better():
    def drifting(run, seen):
        return seen + 9.0 * run.replicate * (run.group_id == "shaped")

    (finding,) = (one for one in findings(evaluated(planted_effect(), drifting)) if one.kind == "drift")
    assert (finding.weight, finding.groups) == ("caps", ("shaped", "simplified"))
    assert "drift: a trend of +8.61 points per pair" in finding.sentence
    (result,) = analyse(fold(evaluated(planted_effect(), drifting))).comparisons
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.headline.endswith("but the differences drift from pair to pair.")
