"""Experiments of one question, joined in Python."""

import pytest
from support.journals.over_tasks import parts_of, write_over_tasks
from support.journals.ready_journals import write
from support.journals.replications import experiment

import esper_ab


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "a", experiment(1).events())
    write(tmp_path / "b", experiment(2, earlier=(1,)).events())
    write(tmp_path / "same", experiment(1, replicates=8).events())
    return tmp_path


def test_the_answer_has_sentences_verdicts_and_the_text_of_the_command(folder):
    answer = esper_ab.compare_experiments([folder / "a", str(folder / "b")])
    assert answer.planned
    assert answer.verdicts == {("shaped", "simplified", ""): "BETTER"}
    assert answer.sentences[0].startswith("Confirmed: ")
    assert "2 experiments together, 12 pairs" in str(answer)
    assert answer.as_dict()["planned"] is True
    assert len(answer.figure.axes[0].get_yticklabels()) == 3


@pytest.mark.parametrize(("names", "reason"), [(["a", "same"], "one rng seed"), (["a"], "at least two")])
def test_experiments_that_cannot_be_joined_are_refused(folder, names, reason):
    with pytest.raises(esper_ab.UsageError, match=reason):
        esper_ab.compare_experiments([folder / name for name in names])


def test_a_single_path_is_no_list_of_experiments(folder):
    with pytest.raises(esper_ab.UsageError, match="at least two"):
        esper_ab.compare_experiments(str(folder / "a"))


def test_experiments_over_several_tasks_have_a_verdict_per_task_and_one_on_the_mean(tmp_path):
    folders = [write_over_tasks(tmp_path / f"e{number}", parts_of(number)) for number in (1, 2)]
    answer = esper_ab.compare_experiments(folders)
    assert answer.verdicts == {
        ("shaped", "simplified", "mean over tasks"): "BETTER",
        ("shaped", "simplified", "digits"): "BETTER",
        ("shaped", "simplified", "mixture"): "BETTER",
    }
    assert len(answer.sentences) == len(answer.figure.axes) == 3
