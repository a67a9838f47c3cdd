"""An experiment with one group: trained, evaluated and reported without a comparison, and comparable later."""

import json

import pytest
from support.commands.in_process import esper_ab, stdout_of

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
def test_an_experiment_of_one_group_reports_no_comparison(seeds, tmp_path, warm_children):
    """With 16 seeds, a plan for two groups would look after 14; here nothing waits for a look."""
    flags = ("--groups", "wait", "--seeds", str(seeds), "--name", "one", *SMALL)
    output = " ".join(stdout_of("launch", *flags, folder=tmp_path).split())
    assert f"mean of {seeds} runs. One group answers no question of which setting is better" in output
    verdict = json.loads((tmp_path / "experiments/one/verdict.json").read_text())
    assert (verdict["comparisons"], verdict["complete"], len(verdict["runs"])) == ([], True, seeds)
    assert "One group answers no question" in " ".join((tmp_path / "experiments/one/summary.txt").read_text().split())
    assert f"{seeds} finished" in stdout_of("status", "experiments/one", folder=tmp_path)
    assert "finished" in stdout_of("list", folder=tmp_path)
    assert len(list((tmp_path / "experiments/one/policies/wait").iterdir())) == seeds
    assert (
        "one group has no verdict to extend"
        in esper_ab("resume", "experiments/one", "--seeds", str(seeds + 1), folder=tmp_path).stderr
    )


def test_two_experiments_with_the_same_seeds_can_be_compared_later(tmp_path, warm_children):
    for name in ("wait", "random"):
        stdout_of("launch", "--groups", name, "--seeds", "6", "--name", name, *SMALL, folder=tmp_path)
    comparison = esper_ab("compare", "experiments/wait", "experiments/random", folder=tmp_path)
    assert comparison.stdout.startswith("EXPLORATORY.")
    assert "exploratory " in comparison.stdout
    assert "by its own plan" not in comparison.stdout  # neither plan has a comparison


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
def test_a_setting_for_comparisons_is_refused_for_one_group(flags, setting, tmp_path, warm_children):
    result = esper_ab("launch", "--groups", "wait", *SMALL, *flags, folder=tmp_path)
    assert result.returncode == 2
    assert f"{setting} needs a comparison, but wait is the only group" in result.stderr


def test_the_python_api_accepts_a_single_variant():
    builder = create_experiment("alone").add_variant("a", controller="wait")
    assert [variant.name for variant in builder.build().variants] == ["a"]
