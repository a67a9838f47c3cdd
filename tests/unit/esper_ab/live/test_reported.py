"""Status of a finished experiment has the verdicts of its report, and no number that could contradict them."""

from __future__ import annotations

import json

from support.journals import planted_effect, write

from esper_ab.journal.load import load
from esper_ab.live.reported import reported
from esper_ab.live.status import status_json, status_text
from esper_ab.report.build import build_report


def test_status_of_a_finished_experiment_ends_with_verdict_and_report(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect())
    assert "`esper-ab report" in status_text(experiment_dir)
    (comparison,) = build_report(experiment_dir).content.comparisons
    said = status_text(experiment_dir)
    assert said.splitlines()[-2:] == [
        f"  {comparison.verdict}: {comparison.headline}", f"report: {experiment_dir / 'report.html'}",
    ]  # fmt: skip
    assert "training so far" not in said
    assert "recent" not in said
    assert json.loads(status_json(experiment_dir))["verdicts"] == [
        {"a": "shaped", "b": "simplified", "verdict": "BETTER", "headline": comparison.headline}
    ]


def test_a_report_of_fewer_replicates_than_the_journal_has_is_not_told(tmp_path):
    experiment_dir = write(tmp_path / "run", planted_effect())
    history = load(experiment_dir).history
    path = build_report(experiment_dir).verdict
    assert reported(experiment_dir, history)[0]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"replicates": 5}))
    found, problem = reported(experiment_dir, history)
    assert found == ()
    assert "of another state" in problem
