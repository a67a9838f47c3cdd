"""When `status --follow` stops waiting for the report of an experiment that has ended."""

from support.journals import planted_effect, write

from esper_ab.contracts.experiment_files import PAGE
from esper_ab.journal.load import load
from esper_ab.live.following import is_reported
from esper_ab.report.build import build_report


def test_a_report_is_there_once_its_last_file_is(tmp_path):
    """The verdicts are written before the page, which the last words name."""
    experiment_dir = write(tmp_path / "run", planted_effect())
    history = load(experiment_dir).history
    assert not is_reported(experiment_dir, history)
    build_report(experiment_dir)
    assert is_reported(experiment_dir, history)
    (experiment_dir / PAGE).unlink()
    assert not is_reported(experiment_dir, history)
