"""The plan of the experiment whose own settings are launched again."""

from support.journals.ready_journals import write
from support.journals.replications import experiment

from esper_ab.campaign.replicated import plan_beside


def test_the_journal_beside_the_settings_has_the_plan(tmp_path):
    write(tmp_path / "demo", experiment(1).events())
    assert plan_beside(tmp_path / "demo" / "experiment.toml") == experiment(1).plan()


def test_without_a_readable_journal_there_is_none(tmp_path):
    assert plan_beside(tmp_path / "experiment.toml") is None
    (tmp_path / "events.jsonl").write_bytes(b"damaged\n")
    assert plan_beside(tmp_path / "experiment.toml") is None
