"""Several experiment directories: what can be compared, what is one group, and that all of it is exploratory."""

from dataclasses import replace

import msgspec
import pytest
from click.testing import CliRunner
from support.journals.ready_journals import planted_effect, with_lost_runs, write
from support.journals.synthetic import Shape, Synthetic

from esper_ab.commands.compare import command
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.worker_order import RewardCode
from esper_ab.journal.events import ExperimentContinued, RunEvaluated, RunReady
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes
from esper_ab.readers.compared import compare_sources, incomparable, observe_together
from esper_ab.verdict.analysis_plan import Rule

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
    return name, fold(listed)


A = source("a", FLOOR)
B = source("b", OTHER)
WIDER = msgspec.structs.replace(B[1].plan, design=msgspec.structs.replace(B[1].design, margin=5.0))


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"rng_seed": 12}, ["rng_seed: 11 in a; 12 in b"]),
        ({"task": "synthetic"}, ["task: digits in a; synthetic in b"]),
        ({"slots": ("early",)}, ['slots: ["early","mid","late"] in a; ["early"] in b']),
        ({"n_envs": 8, "steps": 9}, ["n_envs: 4 in a; 8 in b", "steps: 25 in a; 9 in b"]),
        ({"episodes": 9}, ["episodes: 8 in a; 9 in b"]),
        ({"eval_episodes": 4}, ["eval_episodes: 8 in a; 4 in b"]),
        ({"outcome_over": "last-tenth"}, ["outcome_over: evaluation in a; last-tenth in b"]),
        (
            {"arithmetic": msgspec.structs.replace(A[1].plan.experiment.arithmetic, threads=2)},
            ["arithmetic.threads: 1 in a; 2 in b"],
        ),
        ({"unpaired": True}, ["unpaired: the groups of b share no randomness with each other or with other runs"]),
        ({"plan": {"code": {"sources": "1234", "commit": "abc123"}}}, ["code: commit abc123 in a; sources 1234 in b"]),
        ({"plan": {"versions": {"esper_ab": "0.1.0", "torch": "2.14"}}}, ["version of torch: 2.13 in a; 2.14 in b"]),
        ({"plan": {"plan": WIDER}}, ["margin: 2 in a; 5 in b"]),
        ({"order": "shuffled", "sync": "independent", "devices": ("cuda:0", "cuda:1")}, []),
    ],
)
def test_each_setting_that_differs_is_a_line(changes, lines):
    assert list(incomparable([A, source("b", OTHER, **changes)])) == lines


def test_a_directory_of_two_states_of_the_code_is_refused():
    events = OTHER.events()
    again = ExperimentContinued(versions=events[0].versions, machine=events[0].machine, code={"commit": "def456"})
    last = max(n for n, event in enumerate(events) if isinstance(event, RunReady))
    (line,) = incomparable([A, source("b", OTHER, events=[*events[:last], again, *events[last:]])])
    assert line.startswith("audit of b: The runs used 2 states of the code: commit abc123 in ")
    assert "; commit def456 in " in line
    assert incomparable([A, source("b", OTHER, events=[*events[:-1], again])]) == ()  # it trained nothing


def rewarded(name, sha256):
    """An experiment whose group `mine` trains by a function of the user's, of this source."""
    events = Synthetic(groups={"mine": Shape(mode="my.py:reward"), "shaped": Shape()}).events()
    code = RewardCode(reference="my.py:reward", folder="rewards/x", file="my.py", sha256=sha256)
    replaced = msgspec.structs.replace
    blocks = tuple(
        replaced(
            block,
            runs=tuple(
                replaced(spec, reward_code=(code,)) if spec.ref.group_id == "mine" else spec for spec in block.runs
            ),
        )
        for block in events[0].plan.blocks
    )
    plan = replaced(events[0].plan, blocks=blocks)
    return name, fold([replaced(events[0], plan=plan), *events[1:]])


def test_rewards_of_the_user_are_compared_by_their_source():
    plain = source("c", OTHER)
    assert incomparable([rewarded("a", "11"), rewarded("b", "11"), plain]) == ()
    changed = [rewarded("a", "11"), rewarded("b", "22")]
    assert incomparable(changed) == ("source of my.py:reward: 11 in a; 22 in b",)


def test_equal_settings_with_equal_records_are_one_condition():
    found, scale = observe_together([A, B])
    assert found.groups == ("shaped", "wait", "simplified")
    assert {row.replicate for row in found.rows if row.group == "shaped"} == set("01234567")  # two more in b
    a, b = (outcomes(item[1]) for item in (A, B))
    ends = {(row.group, row.replicate): row.value for row in found.rows}
    assert ends["wait", "3"] == a["wait/3"].outcome
    assert ends["simplified", "7"] == b["simplified/7"].outcome
    assert (scale.margin, scale.outcome) == (A[1].design.margin, A[1].outcome)


def test_order_of_the_directories_changes_names_alone():
    (one, _) = observe_together([A, B])
    (other, _) = observe_together([B, A])
    assert other.groups == ("base", "simplified", "wait")
    assert sorted(row.value for row in one.rows) == sorted(row.value for row in other.rows)


def test_two_conditions_of_one_name_are_told_apart():
    named = Synthetic(groups={"shaped": Shape(accuracy=69.0, mode="simplified"), "wait": Shape(controller="wait")})
    found, _ = observe_together([A, source("b", named)])
    assert found.groups == ("shaped", "wait", "shaped (b)")


def test_equal_settings_with_other_records_are_refused():
    broken = [
        RunEvaluated(record=msgspec.structs.replace(event.record, digest="another"))
        if isinstance(event, RunEvaluated) and event.record.run.name == "base/2"
        else event
        for event in OTHER.events()
    ]
    with pytest.raises(UsageError, match=r"shaped in a and base in b have equal settings.* seed 2, evaluation"):
        observe_together([A, source("b", OTHER, events=broken)])


def test_directories_with_one_group_between_them_are_refused_by_name():
    alone = Synthetic(groups={"shaped": Shape(accuracy=65.0)}).events()
    one = ("a", fold(alone))
    other = ("b", fold(alone))
    with pytest.raises(UsageError, match=r"^a, b: there is only one group, shaped; a comparison needs two$"):
        compare_sources([one, other], Rule())


def test_a_run_that_one_directory_lost_counts_where_another_made_it():
    lost = {"shaped/3": "dropped_pair", "simplified/3": "cancelled"}
    one = ("f", fold(with_lost_runs(planted_effect(), lost)))
    other = ("w", fold(planted_effect()))
    (alone, _) = observe_together([one])
    (both, _) = observe_together([one, other])
    assert {row.run for row in alone.rows if row.value is None} == set(lost)
    assert all(row.value is not None for row in both.rows)


def test_the_command_says_all_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a", replace(FLOOR, replicates=8).events())
    write(tmp_path / "b", OTHER.events())
    text = " ".join(CliRunner().invoke(command, ["a", "b"], catch_exceptions=False).output.split())
    for words in (
        "EXPLORATORY. Nothing was declared",
        "wait is worse than simplified by",
        "exploratory WORSE",
        "a compared shaped and wait by its own plan; `esper-ab report a` shows that verdict",
    ):
        assert words in text
