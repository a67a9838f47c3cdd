"""One policy alone: it is trained, evaluated and reported without a comparison, and can be compared later."""

import json

import pytest
from support.in_process import done, esper_ab

from esper_ab import create_experiment

SMALL = (
    "--task",
    "synthetic",
    "--episodes",
    "1",
    "--steps",
    "2",
    "--n-envs",
    "1",
    "--eval-episodes",
    "2",
    "--launcher",
    "inline",
    "--quiet",
)


@pytest.mark.parametrize("seeds", [2, 16])
def test_one_group_is_trained_whole_and_says_that_it_answers_no_comparison(seeds, tmp_path, warm_children):
    """With 16 seeds, a plan of two groups would look after 14; nothing may wait for that look."""
    asked = ("--groups", "wait", "--seeds", str(seeds), "--name", "one", *SMALL)
    said = " ".join(done("launch", *asked, folder=tmp_path).split())
    assert f"mean of {seeds} runs. One group answers no question of which setting is better" in said
    verdict = json.loads((tmp_path / "experiments/one/verdict.json").read_text())
    assert (verdict["comparisons"], verdict["complete"], len(verdict["runs"])) == ([], True, seeds)
    assert "One group answers no question" in " ".join((tmp_path / "experiments/one/summary.txt").read_text().split())
    assert f"{seeds} finished" in done("status", "experiments/one", folder=tmp_path)
    assert "finished" in done("list", folder=tmp_path)
    assert len(list((tmp_path / "experiments/one/policies/wait").iterdir())) == seeds
    assert (
        "one group has no verdict to extend"
        in esper_ab("resume", "experiments/one", "--seeds", str(seeds + 1), folder=tmp_path).stderr
    )


def test_two_groups_trained_alone_on_the_same_seeds_are_compared_later(tmp_path, warm_children):
    for name in ("wait", "random"):
        done("launch", "--groups", name, "--seeds", "6", "--name", name, *SMALL, folder=tmp_path)
    found = esper_ab("compare", "experiments/wait", "experiments/random", folder=tmp_path)
    assert found.stdout.startswith("EXPLORATORY.")
    assert "exploratory " in found.stdout
    assert "by its own plan" not in found.stdout  # neither has one that compares


@pytest.mark.parametrize(
    ("flags", "setting"),
    [
        (("--seeds", "auto"), "--seeds auto"),
        (("--looks", "4,6"), "--looks 4,6"),
        (("--control", "wait"), "--control wait"),
        (("--untested", "wait"), "--untested wait"),
        (("--seeds", "20", "--futility", "0.8"), "--futility 0.8"),
    ],
)
def test_a_setting_of_comparisons_is_refused_for_one_group(flags, setting, tmp_path, warm_children):
    found = esper_ab("launch", "--groups", "wait", *SMALL, *flags, folder=tmp_path)
    assert found.returncode == 2
    assert f"{setting} needs a comparison, but wait is the only group" in found.stderr


def test_a_program_may_declare_one_variant():
    asked = create_experiment("alone").add_variant("a", controller="wait")
    assert [one.name for one in asked.build().variants] == ["a"]
