"""The content of a report and verdict.json: no evaluation is imputed and no number is missing."""

import dataclasses
import json

from support.journals.ready_journals import planted_effect

from esper_ab.journal.events import RunEvaluated
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.verdict_json import render_verdict


def test_a_missing_evaluation_leaves_out_its_pair():
    lost_event = next(event for event in planted_effect() if isinstance(event, RunEvaluated))
    report_content = content(fold([event for event in planted_effect() if event != lost_event]))
    assert report_content.state.word == "incomplete"
    assert len(report_content.comparisons[0].pairs) == 5
    assert report_content.comparisons[0].verdict == "NO INFERENCE"  # fewer than six pairs


def test_every_number_of_a_comparison_is_in_the_verdict_file():
    report_content = content(fold(planted_effect()))
    (comparison,) = report_content.comparisons
    document = json.loads(render_verdict(report_content))
    excluded_fields = {"question", "progress", "descriptive", "items", "guardrails"}  # the last: only where planned
    keys = {field.name for field in dataclasses.fields(comparison)} - excluded_fields | set(comparison.descriptive)
    assert keys <= set(document["comparisons"][0])
