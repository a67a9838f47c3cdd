"""Several experiment directories: what can be compared, what is one treatment, and that nothing becomes a verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from support.journals import Shape, Synthetic, failed_run, write

from esper_ab.analysis.across import SourceGroup, across
from esper_ab.analysis.across_words import caveats, disagreement, sentence
from esper_ab.analysis.comparable import Source, incomparable
from esper_ab.commands._exit_status import invoke
from esper_ab.commands.compare import command
from esper_ab.contracts.messages import RewardCode
from esper_ab.journal.events import ExperimentContinued, RunEvaluated, RunReady
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes
from esper_ab.verdict.word import Verdict

FLOOR = Synthetic(groups={"shaped": Shape(accuracy=74.0), "wait": Shape(accuracy=33.0, controller="wait")})
OTHER = Synthetic(
    groups={"base": Shape(accuracy=74.0, stream="shaped"), "simplified": Shape(accuracy=69.0, mode="simplified")},
    replicates=8,
)


def source(name, synthetic, *, plan=(), events=None, **experiment):
    """`experiment`: changes of the plan's experiment; `plan`: changes of its first event."""
    listed = list(events or synthetic.events())
    changed = msgspec.structs.replace(listed[0].plan.experiment, **experiment)
    first = msgspec.structs.replace(listed[0], plan=msgspec.structs.replace(listed[0].plan, experiment=changed))
    listed[0] = msgspec.structs.replace(first, **dict(plan))
    return Source(name=name, history=fold(listed))


A, B = source("a", FLOOR), source("b", OTHER)
DESIGN = A.history.design


def test_what_must_agree_agrees():
    assert incomparable([A, B]) == ()


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"rng_seed": 12}, ["rng_seed: 11 in a; 12 in b"]),
        ({"task": "synthetic"}, ["task: digits in a; synthetic in b"]),
        ({"slots": ("early",)}, ['slots: ["early","mid","late"] in a; ["early"] in b']),
        ({"n_envs": 8, "steps": 9}, ["n_envs: 4 in a; 8 in b", "steps: 25 in a; 9 in b"]),
        ({"episodes": 9}, ["episodes: 8 in a; 9 in b"]),
        ({"eval_hosts": 4}, ["eval_hosts: 8 in a; 4 in b"]),
        ({"endpoint": "last-tenth"}, ["endpoint: evaluation in a; last-tenth in b"]),
        (
            {"arithmetic": msgspec.structs.replace(A.history.plan.experiment.arithmetic, threads=2)},
            ["arithmetic.threads: 1 in a; 2 in b"],
        ),
        ({"margin": 5.0, "order": "shuffled", "sync": "independent", "devices": ("cuda:0", "cuda:1")}, []),
    ],
)
def test_each_setting_that_differs_is_a_line(changes, lines):
    assert list(incomparable([A, source("b", OTHER, **changes)])) == lines


def test_code_and_versions_must_agree():
    other = source("b", OTHER, plan={
        "code": {"sources": "1234", "commit": "abc123"}, "versions": {"esper_ab": "0.1.0", "torch": "2.14"},
    })  # fmt: skip
    assert incomparable([A, other]) == (
        "code: commit abc123 in a; sources 1234 in b", "version of torch: 2.13 in a; 2.14 in b",
    )  # fmt: skip


def test_runs_that_share_no_randomness_or_depend_on_each_other_are_refused():
    unpaired = source("b", OTHER, unpaired=True)
    assert incomparable([A, unpaired]) == (
        "unpaired: the groups of b share no randomness with each other or with any other run",
    )
    (line,) = incomparable([A, source("b", OTHER, share_observation_norm=True)])[-1:]
    assert "depend on the groups beside them" in line


def test_a_directory_of_two_states_of_the_code_is_refused():
    events = OTHER.events()
    again = ExperimentContinued(versions=events[0].versions, machine=events[0].machine, code={"commit": "def456"})
    last = max(n for n, event in enumerate(events) if isinstance(event, RunReady))
    (line,) = incomparable([A, source("b", OTHER, events=[*events[:last], again, *events[last:]])])
    assert line.startswith("audit of b: The runs were done by 2 states of the code: commit abc123 in ")
    assert "; commit def456 in " in line
    assert incomparable([A, source("b", OTHER, events=[*events[:-1], again])]) == ()  # it trained nothing


def rewarded(name, sha256):
    """An experiment whose group `mine` trains by a function of the user's, of this source."""
    events = Synthetic(groups={"mine": Shape(mode="my.py:reward"), "shaped": Shape()}).events()
    code = RewardCode(reference="my.py:reward", folder="rewards/x", file="my.py", sha256=sha256)
    replaced = msgspec.structs.replace
    blocks = tuple(
        replaced(block, runs=tuple(
            replaced(spec, reward_code=(code,)) if spec.ref.group_id == "mine" else spec for spec in block.runs
        )) for block in events[0].plan.blocks
    )  # fmt: skip
    plan = replaced(events[0].plan, blocks=blocks)
    return Source(name=name, history=fold([replaced(events[0], plan=plan), *events[1:]]))


def test_rewards_of_the_user_are_compared_by_their_source():
    plain = source("c", OTHER)
    assert incomparable([rewarded("a", "11"), rewarded("b", "11"), plain]) == ()
    changed = [rewarded("a", "11"), rewarded("b", "22")]
    assert incomparable(changed) == ("source of my.py:reward: 11 in a; 22 in b",)


def test_equal_settings_with_equal_records_are_one_condition():
    found = across([A, B])
    assert [treatment.name for treatment in found.treatments] == ["shaped", "wait", "simplified"]
    first = found.treatments[0]
    assert first.members == (SourceGroup(source="a", group="shaped"), SourceGroup(source="b", group="base"))
    assert first.confirmed == tuple(range(6))
    assert sorted(first.endpoints) == list(range(8))  # two more in b
    assert found.disagreements == ()


def test_only_what_no_directory_compared_itself_is_exploratory():
    found = across([A, B])
    assert [(one.a, one.b) for one in found.exploratory] == [("wait", "simplified")]
    assert [(one.source, one.a, one.b, one.verdict) for one in found.declared] == [
        ("a", "shaped", "wait", "BETTER"), ("b", "base", "simplified", "BETTER"),
    ]  # fmt: skip


def test_pairs_are_common_replicates_and_their_mean():
    (one,) = across([A, B]).exploratory
    a, b = (outcomes(item.history) for item in (A, B))
    expected = [a[f"wait/{r}"].endpoint - b[f"simplified/{r}"].endpoint for r in range(6)]
    assert [pair.replicate for pair in one.pairs] == list(range(6))
    assert [pair.a - pair.b for pair in one.pairs] == pytest.approx(expected)
    assert one.plain.mean == pytest.approx(np.mean(expected))
    assert one.plain.df == 5
    assert one.sign_flip.p == 2 / 2**6
    assert one.settings == ("controller.name",)


def test_order_of_the_directories_does_not_change_what_is_found():
    one, other = across([A, B]), across([B, A])
    assert {frozenset(c.members) for c in one.treatments} == {frozenset(c.members) for c in other.treatments}
    assert one.exploratory[0].plain.mean == pytest.approx(-other.exploratory[0].plain.mean)


def broken(replicate):
    """OTHER, with the evaluation of base in one replicate not what it was."""
    return [
        RunEvaluated(record=msgspec.structs.replace(event.record, digest="another"))
        if isinstance(event, RunEvaluated) and event.record.run.name == f"base/{replicate}" else event
        for event in OTHER.events()
    ]  # fmt: skip


def test_equal_settings_with_other_records_are_said_and_kept_apart():
    other = source("b", OTHER, events=broken(2))
    found = across([A, other])
    (one,) = found.disagreements
    assert (one.a, one.b) == (SourceGroup(source="a", group="shaped"), SourceGroup(source="b", group="base"))
    assert (one.replicates, one.common, one.first) == ((2,), 6, "replicate 2, evaluation")
    assert "must be equal, and they are not: in 1 of 6 common replicates" in disagreement(one, DESIGN)
    assert [treatment.name for treatment in found.treatments] == ["shaped", "wait", "base", "simplified"]
    assert ("shaped", "base") not in {(item.a, item.b) for item in found.exploratory}
    assert any("Groups with equal settings gave different records" in text for text in caveats([A, other], found))


def test_no_word_of_a_verdict_is_in_an_exploratory_sentence():
    text = sentence(across([A, B]).exploratory[0], DESIGN)
    assert "no verdict" in text
    assert not any(str(verdict) in text for verdict in Verdict)


@pytest.mark.parametrize(("replicates", "words"), [(1, "nothing follows from one"), (2, "Exploratory: no verdict")])
def test_few_pairs_say_little(replicates, words):
    found = across([source("a", replace(FLOOR, replicates=replicates)), B])
    assert words in sentence(found.exploratory[0], DESIGN)
    said = caveats([A, B], found)
    assert any("Fewer than 6 pairs" in text for text in said) == (replicates == 2)


def test_nothing_in_common():
    only = source("a", FLOOR, events=FLOOR.events()[:1])
    found = across([only, B])
    assert sentence(found.exploratory[-1], DESIGN).endswith("no replicate has an endpoint in both; nothing follows.")
    assert found.exploratory[-1].plain is None
    assert any("a has 12 of 12 runs without an endpoint yet" in text for text in caveats([only, B], found))


def test_machines_and_looks_are_said():
    moved = source("b", OTHER, plan={"machine": {"cpu": "another processor", "cores": "2"}})
    said = caveats([A, moved], across([A, moved]))
    assert any("cpu test processor in a, another processor in b" in text for text in said)
    many = source("b", replace(OTHER, replicates=16))
    assert any("b was looked at on the way" in text for text in caveats([A, many], across([A, many])))
    assert not any("looked at on the way" in text for text in caveats([A, B], across([A, B])))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, synthetic in {"a": FLOOR, "b": OTHER, "c": replace(OTHER, rng_seed=12, n_envs=2)}.items():
        write(tmp_path / name, synthetic.events())
    return tmp_path


def test_the_command_says_all_of_it(folders):
    text = " ".join(CliRunner().invoke(command, ["a", "b"], catch_exceptions=False).output.split())
    for words in (
        "a: finished, shaped, wait, 6 replicates planned",
        "groups: shaped in a; base in b; records of equal settings: equal in 6 replicates",
        "a: shaped is better than wait by", "EXPLORATORY, between experiment directories", "wait - simplified = -35.31 "
        "points",
        "! Not declared before the runs", "under another --rng-seed",
    ):  # fmt: skip
        assert words in text


def test_json_has_no_verdict_for_what_was_not_declared(folders):
    document = json.loads(CliRunner().invoke(command, ["a", "b", "--json"], catch_exceptions=False).output)
    assert [one["run"] for one in document["runs"]] == ["a", "b"]
    assert [one["verdict"] for one in document["exploratory"]] == [None]
    assert document["treatments"][0]["confirmed"] == list(range(6))
    assert len(document["caveats"]) == 4


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["a", "c"], "cannot be compared:\n  rng_seed: 11 in a; 12 in c\n  n_envs: 4 in a; 2 in c\n"),
        (["a"], "two experiment directories at least"),
        (["a", "./a"], "are one experiment directory"),
        (["a", "nowhere"], "no journal"),
    ],
)
def test_what_is_refused(folders, capsys, args, words):
    assert invoke(command, args, "esper-ab compare") == 2
    assert words in capsys.readouterr().err


def test_lost_runs_are_in_no_pair(tmp_path):
    failed = Source(name="f", history=fold(failed_run()))
    other = source("w", FLOOR)
    found = across([failed, other])
    assert {pair.replicate for one in found.exploratory for pair in one.pairs} == {0, 1, 2}
