"""What a report concludes from a journal, and verdict.json: nothing imputed, every number there."""

import dataclasses
import json

from support.journals.ready_journals import planted_effect

from esper_ab.journal.events import RunEvaluated
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.verdict_json import render_verdict


def test_a_lost_evaluation_is_counted_and_never_imputed():
    lost = next(event for event in planted_effect() if isinstance(event, RunEvaluated))
    found = content(fold([event for event in planted_effect() if event != lost]))
    assert found.state.word == "incomplete"
    assert len(found.comparisons[0].pairs) == 5
    assert found.comparisons[0].verdict == "NO INFERENCE"  # fewer than six pairs


def test_every_number_of_a_comparison_is_in_the_verdict():
    found = content(fold(planted_effect()))
    (one,) = found.comparisons
    document = json.loads(render_verdict(found))
    elsewhere = {"question", "progress", "descriptive", "items"}
    keys = {field.name for field in dataclasses.fields(one)} - elsewhere | set(one.descriptive)
    assert keys <= set(document["comparisons"][0])
