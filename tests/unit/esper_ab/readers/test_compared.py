"""Several experiment directories: comparable settings, merged groups, and exploratory verdicts."""

from dataclasses import replace

import msgspec
import pytest
from click.testing import CliRunner
from support.journals.ready_journals import planted_effect, with_lost_runs, write
from support.journals.synthetic import Shape, Synthetic

from esper_ab.commands.compare import command
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import PPOSettings
from esper_ab.contracts.worker_order import RewardCode
from esper_ab.journal.events import ExperimentContinued, RunEvaluated, RunReady
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes
from esper_ab.readers.compared import compare_sources, incomparable, observe_together
from esper_ab.verdict.analysis_plan import Rule

FLOOR = Synthetic(groups={"shaped": Shape(accuracy=74.0), "wait": Shape(accuracy=33.0, controller="wait")})
REWARDS = Synthetic(
    groups={"base": Shape(accuracy=74.0, stream="shaped"), "simplified": Shape(accuracy=69.0, mode="simplified")},
    replicates=8,
)


def source(name, synthetic_experiment, *, plan=(), events=None, **experiment):
    """`experiment`: changes of the plan's experiment; `plan`: changes of its first event."""
    event_list = list(events or synthetic_experiment.events())
    changed_experiment = msgspec.structs.replace(event_list[0].plan.experiment, **experiment)
    changed_start = msgspec.structs.replace(
        event_list[0], plan=msgspec.structs.replace(event_list[0].plan, experiment=changed_experiment)
    )
    event_list[0] = msgspec.structs.replace(changed_start, **dict(plan))
    return name, fold(event_list)


A = source("a", FLOOR)
B = source("b", REWARDS)
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
def test_directories_with_different_settings_cannot_be_compared(changes, lines):
    assert list(incomparable([A, source("b", REWARDS, **changes)])) == lines


def test_a_directory_trained_by_two_states_of_the_code_is_refused():
    events = REWARDS.events()
    continuation = ExperimentContinued(
        versions=events[0].versions, machine=events[0].machine, code={"commit": "def456"}
    )
    last_ready_index = max(n for n, event in enumerate(events) if isinstance(event, RunReady))
    (line,) = incomparable(
        [A, source("b", REWARDS, events=[*events[:last_ready_index], continuation, *events[last_ready_index:]])]
    )
    assert line.startswith("audit of b: The runs used 2 states of the code: commit abc123 in ")
    assert "; commit def456 in " in line
    assert incomparable([A, source("b", REWARDS, events=[*events[:-1], continuation])]) == ()  # it trained nothing


def rewarded(name, sha256):
    """An experiment whose group `mine` trains by a function of the user's, of this source."""
    events = Synthetic(groups={"mine": Shape(mode="my.py:reward"), "shaped": Shape()}).events()
    code = RewardCode(reference="my.py:reward", folder="rewards/x", file="my.py", sha256=sha256)
    replace_fields = msgspec.structs.replace
    blocks = tuple(
        replace_fields(
            block,
            runs=tuple(
                replace_fields(spec, reward_code=(code,)) if spec.ref.group_id == "mine" else spec
                for spec in block.runs
            ),
        )
        for block in events[0].plan.blocks
    )
    plan = replace_fields(events[0].plan, blocks=blocks)
    return name, fold([replace_fields(events[0], plan=plan), *events[1:]])


def test_reward_functions_of_a_user_are_compared_by_their_source_code():
    plain_source = source("c", REWARDS)
    assert incomparable([rewarded("a", "11"), rewarded("b", "11"), plain_source]) == ()
    changed_sources = [rewarded("a", "11"), rewarded("b", "22")]
    assert incomparable(changed_sources) == ("source of my.py:reward: 11 in a; 22 in b",)


def test_groups_with_equal_settings_and_records_are_merged():
    observations, scale = observe_together([A, B])
    assert observations.groups == ("shaped", "wait", "simplified")
    assert {row.replicate for row in observations.rows if row.group == "shaped"} == set("01234567")  # two more in b
    a, b = (outcomes(item[1]) for item in (A, B))
    values = {(row.group, row.replicate): row.value for row in observations.rows}
    assert values["wait", "3"] == a["wait/3"].outcome
    assert values["simplified", "7"] == b["simplified/7"].outcome
    assert (scale.margin, scale.outcome) == (A[1].design.margin, A[1].outcome)


def test_the_order_of_directories_affects_only_the_names_of_groups():
    (forwards, _) = observe_together([A, B])
    (reversed_observations, _) = observe_together([B, A])
    assert reversed_observations.groups == ("base", "simplified", "wait")
    assert sorted(row.value for row in forwards.rows) == sorted(row.value for row in reversed_observations.rows)


def test_different_groups_with_the_same_name_are_renamed():
    named_experiment = Synthetic(
        groups={"shaped": Shape(accuracy=69.0, mode="simplified"), "wait": Shape(controller="wait")}
    )
    observations, _ = observe_together([A, source("b", named_experiment)])
    assert observations.groups == ("shaped", "wait", "shaped (b)")


def test_groups_with_equal_settings_but_different_records_are_refused():
    broken_events = [
        RunEvaluated(record=msgspec.structs.replace(event.record, digest="another"))
        if isinstance(event, RunEvaluated) and event.record.run.name == "base/2"
        else event
        for event in REWARDS.events()
    ]
    with pytest.raises(UsageError, match=r"shaped in a and base in b have equal settings.* seed 2, evaluation"):
        observe_together([A, source("b", REWARDS, events=broken_events)])


def differing_records(**changes):
    """Two experiments whose groups have equal names and settings, and different records."""
    return [
        source(name, Synthetic(groups={"base": Shape(stream=f"{name} base"), "head": Shape(stream=name)}), **changes)
        for name in ("a", "b")
    ]


@pytest.mark.parametrize(
    ("trainer", "causes"),
    [
        ("", "another device or processor can cause this"),
        ("t.py:train", "a file that it reads, or another device or processor, can cause this"),
        ("./t {seed}", "a file that the command imports or reads, or another device or processor, can cause this"),
    ],
)
def test_what_can_cause_different_records_depends_on_the_trainer(trainer, causes):
    with pytest.raises(UsageError, match=f"first in seed 0, .*: {causes}"):
        observe_together(differing_records(trainer=trainer))


def test_groups_in_other_states_of_the_code_are_different_groups():
    in_states = [
        (name, fold([with_states(events[0], codes), *events[1:]]))
        for name, events, codes in (
            ("a", Synthetic(groups={"base": Shape(stream="b"), "head": Shape(stream="h")}).events(), ("c1", "c2")),
            ("b", Synthetic(groups={"base": Shape(stream="b"), "head": Shape(stream="x")}).events(), ("c1", "c3")),
        )
    ]
    observations, _ = observe_together(in_states)
    assert observations.groups == ("base", "head", "head (b)")


def with_states(started, commits):
    code = tuple(f"{name}={commit}" for name, commit in zip(("base", "head"), commits, strict=True))
    experiment = msgspec.structs.replace(started.plan.experiment, trainer="./t {seed}", code=code)
    return msgspec.structs.replace(started, plan=msgspec.structs.replace(started.plan, experiment=experiment))


def test_a_setting_that_differs_between_experiments_as_well_is_named_before_the_answer():
    slow = PPOSettings(lr=0.5)
    other = Synthetic(
        groups={"sparse": Shape(mode="sparse", ppo=slow), "simplified": Shape(mode="simplified", ppo=slow)}
    )
    rewards = Synthetic(groups={"shaped": Shape(), "minimal": Shape(mode="minimal")})
    observations, _ = observe_together([source("a", rewards), source("b", other)])
    assert observations.reading == (
        "Groups of different experiments differ in ppo.lr as well, whatever their names: 0.002 in a; 0.5 in b.",
    )
    assert observe_together([A, B])[0].reading == ()
    alone = [source(name, Synthetic(groups={name: Shape(ppo=PPOSettings(lr=lr))})) for name, lr in (("a", 1), ("b", 2))]
    assert observe_together(alone)[0].reading == ()  # the setting is the treatment


def test_directories_with_only_one_group_in_common_are_refused():
    events = Synthetic(groups={"shaped": Shape(accuracy=65.0)}).events()
    first_source = ("a", fold(events))
    second_source = ("b", fold(events))
    with pytest.raises(UsageError, match=r"^a, b: there is only one group, shaped; a comparison needs two$"):
        compare_sources([first_source, second_source], Rule())


def test_a_lost_run_is_replaced_by_its_outcome_in_another_directory():
    losses = {"shaped/3": "dropped_pair", "simplified/3": "cancelled"}
    source_with_losses = ("f", fold(with_lost_runs(planted_effect(), losses)))
    complete_source = ("w", fold(planted_effect()))
    (separate_observations, _) = observe_together([source_with_losses])
    (observed_together, _) = observe_together([source_with_losses, complete_source])
    assert {row.run for row in separate_observations.rows if row.value is None} == set(losses)
    assert all(row.value is not None for row in observed_together.rows)


def test_compare_calls_its_verdicts_exploratory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a", replace(FLOOR, replicates=8).events())
    write(tmp_path / "b", REWARDS.events())
    text = " ".join(CliRunner().invoke(command, ["a", "b"], catch_exceptions=False).output.split())
    for sentence in (
        "EXPLORATORY. Nothing was declared",
        "wait is worse than simplified by",
        "exploratory WORSE",
        "a compared shaped and wait by its own plan; `esper-ab report a` shows that verdict",
    ):
        assert sentence in text
