"""Replications: both verdicts are shown, and no sentence about settings is false."""

import json
from dataclasses import replace

import msgspec
import pytest
from click.testing import CliRunner
from support.journals.ready_journals import write
from support.journals.synthetic import Shape, Synthetic

from esper_ab.commands.compare import command
from esper_ab.contracts.errors import UsageError
from esper_ab.journal.fold import fold
from esper_ab.readers.compared import compare_sources
from esper_ab.readers.replications import are_replications, remarks
from esper_ab.verdict.analysis_plan import Rule

ORIGINAL = Synthetic()
REPLICATION = replace(ORIGINAL, rng_seed=12, replicates=8)


def source(name, synthetic_experiment, **start_changes):
    first_event, *later_events = synthetic_experiment.events()
    return name, fold([msgspec.structs.replace(first_event, **start_changes), *later_events])


@pytest.mark.parametrize(
    ("synthetic_experiment", "expected"),
    [
        (REPLICATION, True),
        (replace(REPLICATION, groups=dict(reversed(ORIGINAL.groups.items()))), True),
        (replace(REPLICATION, groups={"shaped": Shape(accuracy=74.0), "wait": Shape(controller="wait")}), False),
        (replace(REPLICATION, episodes=9), False),
        (ORIGINAL, False),
    ],
)
def test_experiments_that_differ_only_in_rng_seed_are_replications(synthetic_experiment, expected):
    assert are_replications([source("a", ORIGINAL), source("b", synthetic_experiment)]) is expected


def test_a_replication_with_other_versions_gets_a_remark():
    replication = source("b", REPLICATION, versions={"esper_ab": "0.1.0", "torch": "2.14"})
    assert are_replications([source("a", ORIGINAL), replication])
    assert remarks([source("a", ORIGINAL), replication]) == ("version of torch: 2.13 in a; 2.14 in b",)


def test_a_refusal_does_not_claim_equal_settings_for_different_rng_seeds():
    with pytest.raises(UsageError) as caught:
        compare_sources([source("a", ORIGINAL), source("b", replace(REPLICATION, episodes=9))], Rule())
    assert "rng_seed: 11 in a; 12 in b" in str(caught.value)
    assert "equal settings" not in str(caught.value)


@pytest.fixture
def two_directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a", ORIGINAL.events())
    write(tmp_path / "b", REPLICATION.events())


def invoked(*args):
    return CliRunner().invoke(command, ["a", "b", *args], catch_exceptions=False).output


@pytest.mark.usefixtures("two_directories")
def test_compare_shows_the_verdicts_of_replications_side_by_side():
    text = " ".join(invoked().split())
    assert "different rng seeds (11 and 12)" in text
    replications = json.loads(invoked("--json"))["replications"]
    assert [
        (replication["experiment"], replication["rng_seed"], replication["replicates"]) for replication in replications
    ] == [("a", 11, 6), ("b", 12, 8)]
    for replication in replications:
        (comparison,) = replication["comparisons"]
        start = text.index(f"{replication['experiment']} (rng seed {replication['rng_seed']}")
        assert text.index(f"{comparison['verdict']}: {comparison['headline']}", start) > start
        assert all(f"! {warning}" in text for warning in comparison["warnings"])


@pytest.mark.usefixtures("two_directories")
@pytest.mark.parametrize("flags", [("--control", "shaped"), ("--alpha", "0.1"), ("--figure", "a.svg")])
def test_flags_of_an_exploratory_comparison_are_refused_for_replications(flags):
    with pytest.raises(UsageError, match=f"{flags[0]} is not for replications"):
        invoked(*flags)
