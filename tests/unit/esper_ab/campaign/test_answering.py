"""The answer of a replication ends in one sentence about it and the experiments that it replicates."""

import shutil
from dataclasses import replace

import pytest
from support.journals.over_tasks import parts_of, write_over_tasks
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


@pytest.fixture(scope="module")
def replication_over_tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("over-tasks")
    first = write_over_tasks(folder / "first", parts_of(1))
    return write_over_tasks(folder / "again", parts_of(2), earlier=[first])


@pytest.mark.parametrize("form", ["brief", "text", "whole"])
def test_a_replication_over_several_tasks_ends_in_a_sentence_on_the_mean_and_on_each_task(replication_over_tasks, form):
    text = text_of(replication_over_tasks, form)
    start = "Confirmed: first and again each show that shaped is better than simplified; pooled as planned (12 pairs)"
    places = [text.index(f"{task}: {start}") for task in ("Mean over tasks", "digits", "mixture")]
    assert places == sorted(places)
    assert "Confirmed" not in (replication_over_tasks / "summary.txt").read_text()


@pytest.mark.parametrize("change", ["missing", "another"])
def test_an_original_over_several_tasks_that_is_not_there_is_not_mentioned(tmp_path, change):
    first = write_over_tasks(tmp_path / "first", parts_of(1))
    again = write_over_tasks(tmp_path / "again", parts_of(2), earlier=[first])
    shutil.rmtree(first)
    if change == "another":
        write_over_tasks(first, parts_of(5))
    assert "Confirmed" not in text_of(again, "text")
