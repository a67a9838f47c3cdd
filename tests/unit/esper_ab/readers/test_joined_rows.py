"""Files with rows of items: a file per checkpoint, or per run of a group."""

import pytest

from esper_ab.contracts.errors import Unanswered, UsageError
from esper_ab.readers.read_outcomes import read_outcomes
from esper_ab.readers.reading_rules import ReadingRules
from esper_ab.readers.steps import StepRule
from esper_ab.verdict.levels import at_level


@pytest.fixture
def write(tmp_path):
    def written(name, header, rows):
        path = tmp_path / name
        path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
        return path

    return written


def read(paths, **rules):
    return at_level(read_outcomes(paths, ReadingRules(**rules)).observations, None)


def test_one_file_of_questions_per_checkpoint_can_be_read(write):
    rows = [(question, epoch, 1) for question in range(4) for epoch in range(2)]
    paths = [write(f"{group}.csv", "question,epoch,correct", rows) for group in ("old", "new")]
    found = read(paths)
    assert found.reading == ("Read: 2 checkpoints x 4 questions x 2 repeats in 2 groups; level: checkpoints.",)
    assert found.notes == ()


def test_one_file_of_questions_per_run_can_be_read(write):
    rows = [(question, 1) for question in range(4)]
    paths = [write(f"{group}-s{seed}.csv", "question,correct", rows) for group in ("old", "new") for seed in range(2)]
    assert read(paths).reading == ("Read: 4 runs x 4 questions in 2 groups; level: trainings.",)


def test_seeds_are_read_from_a_column_beside_questions(write):
    rows = [(seed, question, 1) for seed in range(2) for question in range(4)]
    paths = [write(f"{group}.csv", "seed,question,correct", rows) for group in ("old", "new")]
    assert read(paths).reading == ("Read: 4 runs x 4 questions in 2 groups; level: trainings.",)


def test_the_user_is_asked_about_files_with_a_row_per_episode(write):
    paths = [write(f"{group}.csv", "episode,success", [(at, at % 2) for at in range(4)]) for group in ("old", "new")]
    with pytest.raises(Unanswered) as error:
        read(paths)
    (question,) = error.value.questions
    assert "an evaluation of the finished run, or its training, of which the last episodes count" in question.about
    assert [(answer.key, answer.value) for answer in question.answers] == [("rows", "items"), ("mean_last", 100)]
    assert read(paths, rows="items").reading == ("Read: 2 checkpoints x 4 episodes in 2 groups; level: checkpoints.",)
    trained = read(paths, steps=StepRule(mean_last=2))
    assert [row.value for row in trained.rows] == [0.5, 0.5]


def test_rows_with_a_step_are_read_as_the_progress_of_a_run(write):
    paths = [write(f"{group}.csv", "step,episode,score", [(at, at, at) for at in range(4)]) for group in ("old", "new")]
    assert [row.value for row in read(paths).rows] == [3.0, 3.0]


def test_files_with_different_columns_of_items_are_refused(write):
    paths = [
        write("old.csv", "question,correct", [(0, 1), (1, 0)]),
        write("new.csv", "prompt,correct", [(0, 1), (1, 0)]),
    ]
    with pytest.raises(UsageError, match=r"has a column 'question' and .* has none"):
        read(paths)


def test_a_run_that_ends_without_a_finite_number_is_lost(write):
    files = []
    for seed in range(3):
        rows = [(seed, step, "nan" if (seed, step) == (1, 2) else step) for step in range(3)]
        files.append(write(f"new-{seed}.csv", "seed,step,score", rows))
        files.append(write(f"old-{seed}.csv", "seed,step,score", [(seed, step, step) for step in range(3)]))
    found = read(files, runs="{group}-*")
    assert [row.value for row in found.rows if row.group == "new"] == [2.0, None, 2.0]
    assert "Lost, because a value that counts is not a finite number: new, seed 1" in found.notes[0]
