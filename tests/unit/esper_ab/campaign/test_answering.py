"""The answer of a replication ends in one sentence about it and the experiments that it replicates."""

from dataclasses import replace

import pytest
from support.journals.ready_journals import write
from support.journals.replications import experiment

from esper_ab.campaign.answering import write_answer

SENTENCE = "Confirmed: seed1 and seed2 each show that shaped is better than simplified; pooled as planned"


def text_of(folder, form):
    return " ".join(write_answer(folder, form).text.split())


@pytest.fixture(scope="module")
def replication(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replication")
    write(folder / "seed1", experiment(1).events())
    write(folder / "seed2", experiment(2, earlier=(1,)).events())
    return folder / "seed2"


@pytest.fixture(scope="module")
def texts(replication):
    """The answer in every form."""
    return {form: text_of(replication, form) for form in ("brief", "text", "whole")}


@pytest.mark.parametrize("form", ["brief", "text", "whole"])
def test_a_replication_ends_in_one_sentence_about_both(texts, form):
    assert SENTENCE in texts[form]


def test_the_sentence_about_both_ends_in_the_pooled_interval(texts):
    assert texts["text"].endswith("97.5 % interval +2.50 to +5.97.")


@pytest.mark.usefixtures("texts")
def test_the_files_rest_on_the_own_journal_alone(replication):
    for name in ("summary.txt", "verdict.json", "report.html"):
        assert "Confirmed" not in (replication / name).read_text()


def test_the_next_step_reads_both_together(texts):
    assert "next: Read it together with seed1, which it replicates." in texts["brief"]


@pytest.mark.parametrize(
    "other", [None, replace(experiment(1), digest="9" * 64), replace(experiment(1, earlier=()), episodes=9)]
)
def test_an_original_that_is_missing_or_another_experiment_is_not_mentioned(tmp_path, other):
    if other is not None:
        write(tmp_path / "seed1", other.events())
    write(tmp_path / "seed2", experiment(2, earlier=(1,)).events())
    assert "Confirmed" not in text_of(tmp_path / "seed2", "text")
