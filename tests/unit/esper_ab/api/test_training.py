"""`compare_training`: its refusals before anything starts, and comparisons with real processes."""

from pathlib import Path
from typing import Any

import pytest
from support.outcomes.trained_function import train

from esper_ab import Results, UsageError, compare_training

pytestmark = pytest.mark.usefixtures("warm_children")
GROUPS = {"slow": {"lr": 0.1}, "fast": {"lr": 0.9}}


def refusal(*arguments: Any, **options: Any) -> str:
    with pytest.raises(UsageError) as error:
        compare_training(*arguments, **{"margin": 1} | options)
    return str(error.value)


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("experiments")
    return compare_training(train, GROUPS, margin=0.5, higher="score", output_dir=folder, devices=["cpu:0"])


def test_all_groups_are_compared_with_the_first(answer: Results) -> None:
    assert answer.verdicts == {("fast", "slow"): "BETTER"}


def test_printing_an_answer_shows_its_text(answer: Results) -> None:
    lines = str(answer).splitlines()
    assert lines[:3] == [str(answer.path), "slow: 6 of 6 runs done", "fast: 6 of 6 runs done"]
    assert lines[3].startswith("fast is better than slow by ")


def test_an_answer_is_a_table_in_a_notebook(answer: Results) -> None:
    assert "<b>BETTER</b>" in answer._repr_html_()


def test_a_list_is_recorded_as_a_curve(answer: Results) -> None:
    rows = answer.loaded.query("SELECT DISTINCT episode, step FROM env_episodes ORDER BY episode").fetchall()
    assert rows == [(0, 0.0), (1, 1.0), (2, 2.0)]


def test_compare_training_prints_no_output_without_a_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    compare_training(train, GROUPS, margin=0.5, higher="score", seeds=1, output_dir=tmp_path, devices=["cpu:0"])
    assert capfd.readouterr().out == ""


def test_an_error_of_the_rehearsal_names_the_argument_and_not_the_flag(tmp_path: Path) -> None:
    assert "outside outcome_range=100..200; correct the range" in refusal(
        train, GROUPS, higher="score", outcome_range="100..200", output_dir=tmp_path, devices=["cpu:0"]
    )


def test_the_error_about_a_failing_function_names_the_function(tmp_path: Path) -> None:
    groups = {"slow": {"lr": 0.1}, "fast": {"lr": 0.9, "fail_at": 0.9}}
    problem = refusal(train, groups, margin=0.1, lower="score", output_dir=tmp_path, devices=["cpu:0"])
    assert "group 'fast': train failed: ValueError: a planted failure (trained_function.py, line " in problem


@pytest.mark.parametrize(
    ("groups", "options", "complaint"),
    [
        (GROUPS, {"higher": "a", "lower": "b"}, "compare_training: higher and lower exclude each other, because one"),
        (GROUPS, {"marginn": 2}, "compare_training: no argument 'marginn'; did you mean margin?"),
        (GROUPS, {"seed": 2}, "compare_training: no argument 'seed'; did you mean seeds"),
        (GROUPS, {"margin": 0}, "compare_training: margin: "),
        (GROUPS, {"seeds": "six"}, "compare_training: seeds: "),
        (
            GROUPS,
            {"rehearsal": "steps=1"},
            "compare_training: rehearsal: expected settings, as in {'steps': 100}, not 'st",
        ),
        (
            GROUPS,
            {"higher": "a:b"},
            "outcome=a:b is only for a command; for a function, give a name in the dict",
        ),
        (GROUPS, {"output_dir": 3}, "output_dir=3: expected a path"),
        ({"one": {}}, {}, "compare_training: expected settings of two groups or more, as in "),
        ([1, 2], {}, "compare_training: expected settings of two groups or more, as in "),
        ({"a": 1, "b": {}}, {}, "compare_training: expected settings of two groups or more, as in "),
        ({"a b": {}, "c": {}}, {}, "group name 'a b': "),
        ({"a": {"lr": [1]}, "b": {}}, {}, "group 'a': lr: expected true or false, a number or text, not [1]"),
        (
            {"a": {"l r": 1}, "b": {}},
            {},
            "group 'a': l r: a setting is named like a parameter of the function, not 'l r'",
        ),
        ({"a": {"lr": float("nan")}, "b": {}}, {}, "group 'a': lr: expected a finite number, not nan"),
    ],
)
def test_impossible_comparisons_of_functions_are_refused_in_one_line(
    tmp_path: Path, groups: Any, options: dict[str, Any], complaint: str
) -> None:
    line = refusal(train, groups, **{"output_dir": tmp_path} | options)
    assert line.startswith(complaint)
    assert "\n" not in line


def test_a_refused_comparison_leaves_no_directory(tmp_path: Path) -> None:
    line = refusal(train, {"a": {"lrr": 1}, "b": {"lr": 1}}, higher="score", output_dir=tmp_path)
    assert line.endswith("train has no parameter 'lrr'; did you mean lr?")
    assert not list(tmp_path.iterdir())
