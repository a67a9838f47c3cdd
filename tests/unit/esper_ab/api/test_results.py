"""The reason of an early end, as in `Results.error`, and the runs without a result."""

from pathlib import Path

from support.journals.ready_journals import failed_run, planted_effect

from esper_ab.api.results import Results, early_end
from esper_ab.contracts.errors import WorkerFailed
from esper_ab.journal.events import Incident
from esper_ab.journal.fold import fold
from esper_ab.report.content import content

ERROR = WorkerFailed(
    "worker w00/3 on cpu:0 crashed, training shaped/1\nthe end of logs/shaped-1.log:\n  Traceback\n  ValueError\n"
    "that was the third time in a row\nto go on: esper-ab resume 'my runs/one' --launcher ray"
)
DEATH = Incident(category="worker_death", run_name="shaped/1", episode=None, detail="crashed")


def test_the_reason_for_an_early_end_names_cause_log_and_resume_command():
    history = fold([*planted_effect()[:30], DEATH])
    assert early_end(ERROR, Path("my runs/one"), history) == (
        "worker w00/3 on cpu:0 crashed, training shaped/1; that was the third time in a row; "
        "see `esper-ab logs 'my runs/one' shaped/1`; to go on: `esper-ab resume 'my runs/one' --launcher ray`"
    )


def test_the_reason_omits_the_resume_command_if_the_error_names_none():
    error = WorkerFailed("worker w00/3 crashed\nthe end of a log:\n  Traceback\n  ValueError")
    reason = early_end(error, Path("one"), fold(planted_effect()))
    assert reason == "worker w00/3 crashed; see `esper-ab logs one`"
    assert early_end(None, Path("one"), fold(planted_effect())) == "", "without a failure"


def test_only_runs_that_failed_are_said_to_have_failed():
    results = Results(Path("one"), content(fold(failed_run())), "")
    assert results.failure_lines == [
        "shaped: 3 of 6 runs without a result, none of which failed itself",
        "  1 x not finished; the experiment failed",
        "  2 x not started; the experiment failed",
        "simplified: 3 of 6 runs without a result, 1 of which failed",
        "  1 x exit code -9",
        "  2 x not started; the experiment failed",
    ]
