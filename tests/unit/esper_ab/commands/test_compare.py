"""`compare` of experiments on different rng seeds: text, JSON, figure, page, and its refusals."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.journals.over_tasks import parts_of, write_over_tasks
from support.journals.ready_journals import write
from support.journals.replications import experiment

from esper_ab.commands.compare import command
from esper_ab.contracts.errors import UsageError


@pytest.fixture(autouse=True)
def directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a", experiment(1).events())
    write(tmp_path / "b", experiment(2, earlier=(1,)).events())
    write(tmp_path / "longer", experiment(3, episodes=9).events())
    write(tmp_path / "sparse", experiment(1, replicates=8).events())


def invoked(*args):
    return CliRunner().invoke(command, list(args), catch_exceptions=False).output


def test_the_sentence_about_both_is_printed_first():
    assert " ".join(invoked("b", "a").split()).startswith(
        "shaped against simplified in a and b Confirmed: a and b each show that shaped is better than simplified;"
    )


def test_json_has_the_pooled_comparison():
    document = json.loads(invoked("a", "b", "--json"))
    assert document["together"][0]["pooled"]["comparison"]["used"] == 12


def test_a_figure_and_a_page_are_written(tmp_path):
    invoked("a", "b", "--figure", "forest.svg", "--page", "joint.html")
    assert (tmp_path / "forest.svg").read_text().startswith("<?xml")
    assert "Confirmed: a and b" in (tmp_path / "joint.html").read_text()


@pytest.mark.parametrize("flags", [("--control", "shaped"), ("--alpha", "0.1"), ("--scores", "0..100")])
def test_flags_of_the_comparison_within_one_rng_seed_are_refused(flags):
    with pytest.raises(UsageError, match=f"{flags[0]} is not for experiments with different rng seeds"):
        invoked("a", "b", *flags)


def test_a_page_is_refused_for_experiments_with_one_rng_seed():
    with pytest.raises(UsageError, match="--page is for experiments with different rng seeds"):
        invoked("a", "sparse", "--page", "joint.html")


def test_different_questions_are_refused():
    with pytest.raises(UsageError, match="different questions") as caught:
        invoked("a", "longer")
    assert str(caught.value).endswith("\n  episodes: 8 in a; 9 in longer")


def test_experiments_over_several_tasks_are_compared_on_their_mean_first():
    write_over_tasks(Path("first"), parts_of(1))
    write_over_tasks(Path("again"), parts_of(2))
    text = " ".join(invoked("first", "again", "--figure", "forest.svg").split())
    assert text.startswith(
        "shaped against simplified in first and again Mean over tasks: Confirmed: first and again each show"
    )
    assert Path("forest.svg").read_text().startswith("<?xml")


def test_flags_of_one_rng_seed_are_refused_for_experiments_over_several_tasks():
    write_over_tasks(Path("first"), parts_of(1))
    write_over_tasks(Path("again"), parts_of(2))
    with pytest.raises(UsageError, match="--alpha is not for experiments with different rng seeds"):
        invoked("first", "again", "--alpha", "0.1")
