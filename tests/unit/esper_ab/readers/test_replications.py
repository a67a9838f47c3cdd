"""The replication that a report recommends, beside its original: both verdicts, and no false sentence."""

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

FIRST = Synthetic()
AGAIN = replace(FIRST, rng_seed=12, replicates=8)


def source(name, made, **started):
    first, *others = made.events()
    return name, fold([msgspec.structs.replace(first, **started), *others])


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (AGAIN, True),
        (replace(AGAIN, groups=dict(reversed(FIRST.groups.items()))), True),
        (replace(AGAIN, groups={"shaped": Shape(accuracy=74.0), "wait": Shape(controller="wait")}), False),
        (replace(AGAIN, episodes=9), False),
        (FIRST, False),
    ],
)
def test_replications_have_the_same_groups_and_budget_and_another_rng_seed(made, expected):
    assert are_replications([source("a", FIRST), source("b", made)]) is expected


def test_other_code_and_versions_are_named():
    other = source("b", AGAIN, versions={"esper_ab": "0.1.0", "torch": "2.14"})
    assert are_replications([source("a", FIRST), other])
    assert remarks([source("a", FIRST), other]) == ("version of torch: 2.13 in a; 2.14 in b",)


def test_runs_with_different_randomness_are_never_said_to_have_equal_randomness():
    with pytest.raises(UsageError) as caught:
        compare_sources([source("a", FIRST), source("b", replace(AGAIN, episodes=9))], Rule())
    assert "rng_seed: 11 in a; 12 in b" in str(caught.value)
    assert "equal settings" not in str(caught.value)


@pytest.fixture
def both(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a", FIRST.events())
    write(tmp_path / "b", AGAIN.events())


def invoked(*args):
    return CliRunner().invoke(command, ["a", "b", *args], catch_exceptions=False).output


@pytest.mark.usefixtures("both")
def test_compare_shows_both_verdicts_beside_each_other():
    text = " ".join(invoked().split())
    assert "different rng seeds (11 and 12)" in text
    told = json.loads(invoked("--json"))["replications"]
    assert [(one["experiment"], one["rng_seed"], one["replicates"]) for one in told] == [("a", 11, 6), ("b", 12, 8)]
    for one in told:
        (compared,) = one["comparisons"]
        where = text.index(f"{one['experiment']} (rng seed {one['rng_seed']}")
        assert text.index(f"{compared['verdict']}: {compared['headline']}", where) > where
        assert all(f"! {warning}" in text for warning in compared["warnings"])


@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("flags", [("--control", "shaped"), ("--alpha", "0.1"), ("--figure", "a.svg")])
def test_flags_of_a_joint_comparison_are_refused(flags):
    with pytest.raises(UsageError, match=f"{flags[0]} is not for replications"):
        invoked(*flags)
