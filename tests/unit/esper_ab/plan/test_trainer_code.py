from pathlib import Path

import msgspec
import pytest
from support.plans.requests import FACTS, asked, planned, rehearsed, toml

from esper_ab.campaign.experiment_directory import make_experiment_directory
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.source_files import source_sha256
from esper_ab.kinds.trainer.rehearsed import in_sentences
from esper_ab.plan.blocks import extend
from esper_ab.plan.estimate import estimate
from esper_ab.plan.plan import Plan
from esper_ab.plan.settings_toml import experiment_toml, run_toml

PYTHON = {"trainer": "mine.py", "outcome_better": "lower", "margin": 0.5, "outcome_range": "0..9", "episodes": 3}
COMMAND = PYTHON | {"trainer": "run {seed} {lr} {out}", "outcome": "r.json:x", "episodes": 1}
GROUPS = ("slow:trainer.lr=0.1", "fast:trainer.lr=0.2")


def plan(there: Machine | None = None, **changes: object) -> Plan:
    return planned(asked(group=GROUPS, **PYTHON | changes), there or rehearsed())


def test_a_run_has_its_trainer_and_the_settings_as_the_preflight_typed_them() -> None:
    typed = {"slow": {"lr": 0.1, "deep": True}, "fast": {"lr": 0.2, "deep": True}}
    specs = {spec.ref.name: spec for block in plan(rehearsed(settings=typed)).blocks for spec in block.runs}
    spec = specs["fast/1"]
    assert (spec.settings.trainer, spec.eval_episodes, spec.episodes, spec.n_envs) == (typed["fast"], 4, 3, 1)
    assert spec.trainer is not None
    assert (spec.trainer.out, spec.trainer.folder) == ("runs/fast-1/out", f"trainer/{'a' * 12}")
    assert spec.trainer.worst == 9.0
    assert (spec.trainer.resumes, spec.trainer.metrics, spec.ref.controller) == (True, {"Loss": "loss"}, "trainer")
    assert len({spec.trainer.out for spec in specs.values() if spec.trainer}) == len(specs)


def test_added_replicates_have_folders_of_their_own() -> None:
    first = plan()
    added = extend(first, first.design, 6, 2)
    assert [spec.trainer.out for block in added.blocks for spec in block.runs if spec.trainer] == [
        f"runs/{spec.ref.group_id}-{spec.ref.replicate}/out" for block in added.blocks for spec in block.runs
    ]


def test_another_trainer_is_another_experiment() -> None:
    assert len({plan(rehearsed(sha256=letter * 64)).digest for letter in "aba"}) == 2


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("evaluation", "in error between two groups"),
        ("curve-mean", "in error, averaged over all points, between two"),
        ("last-tenth", "in error, averaged over the last tenth of the points, between two groups"),
    ],
)
def test_the_plan_says_what_is_compared_by_its_outcome(outcome: str, words: str) -> None:
    assert words in plan(outcome_over=outcome).estimand


def test_the_plan_says_what_is_compared_in_words_of_its_own() -> None:
    said = plan().estimand
    assert said == (
        "Mean difference in error between two groups, in J, over the same seeds for both groups; lower is better."
    )
    assert not [word for word in ("accuracy", "policy", "points", "host") if word in said]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "as rehearsed: repeats to the bit; resumes exactly"),
        ({"repeats": False, "resumption": "resumes"}, "does not repeat: the same seed gave different numbers; resumes"),
        (
            {"resumption": "anew", "shortened": "steps=9"},
            "as rehearsed, shortened by steps=9: repeats to the bit; starts over",
        ),
        (
            {"resumption": "resumes", "evaluates_alike": False},
            "not to the same bits. A process that had not trained evaluated the same state differently: "
            "the evaluation uses more than the state, so",
        ),
    ],
)
def test_the_plan_says_what_the_rehearsal_found_and_no_more(changes: dict[str, object], words: str) -> None:
    made = plan(rehearsed(**changes))
    assert words in made.notes[0]
    assert made.trainer is not None
    assert made.notes[0] == in_sentences(made.trainer, "/mine.py")


def test_the_first_screen_of_a_plan_says_that_idle_runs_are_ended() -> None:
    assert not any("--end-idle" in note for note in plan(rehearsed()).notes)
    made = plan(rehearsed(ends_idle=True))
    assert [note for note in made.notes[: made.limits] if note.startswith("--end-idle: ")]


def test_it_is_said_which_files_of_a_command_are_watched() -> None:
    files = msgspec.structs.replace(FACTS, files=("train.py", "conf.yaml"))
    assert "starts only if train.py, conf.yaml has not changed since; other" in in_sentences(files, COMMAND["trainer"])
    none = msgspec.structs.replace(FACTS, files=())
    assert "changes of its code would go unnoticed" in in_sentences(none, COMMAND["trainer"])
    assert "not checked" not in in_sentences(files, "/mine.py"), "its files are copied"


def test_equal_groups_must_agree_only_where_the_trainer_repeats() -> None:
    same = {"a": {"lr": 0.1}, "b": {"lr": 0.1}}
    asks = asked("a", "b", sets=("trainer.lr=0.1",), **PYTHON)
    exact = planned(asks, rehearsed(settings=same))
    chance = planned(asks, rehearsed(settings=same, repeats=False))
    assert any("their records must be identical" in note for note in exact.notes)
    assert not any("identical" in note for note in chance.notes)
    assert any("differ by chance alone" in note for note in chance.notes)


def test_a_run_is_expected_to_take_what_it_took_in_the_rehearsal() -> None:
    made = plan()
    one = estimate(made.experiment, made.lanes, rehearsed())
    assert one.step_s == 2.0
    assert one.duration_s - one.start_up_s == pytest.approx(6 * (3 * 2.0 + 1.0))


@pytest.mark.parametrize("said", [PYTHON, COMMAND])
def test_settings_that_are_written_plan_the_same_experiment_again(tmp_path: Path, said: dict[str, object]) -> None:
    there = rehearsed(evaluations=1)
    made = planned(asked(group=GROUPS, **said), there)
    again = planned(asked(toml=toml(tmp_path, experiment_toml(made, there))), there)
    assert again.digest == made.digest
    (spec,) = [spec for spec in made.blocks[0].runs if spec.ref.group_id == "fast"]
    alone = toml(tmp_path, run_toml(made, spec))
    beside = asked("fast", "beside", group=("beside:trainer.lr=0.3",), toml=alone)
    assert {group.name: group.settings.trainer for group in beside.groups} == {
        "fast": {"lr": 0.2},
        "beside": {"lr": "0.3"},
    }


def test_an_experiment_keeps_the_trainer_that_was_rehearsed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    there = rehearsed(root=str(tmp_path), sha256=source_sha256(tmp_path, ("mine.py",)))
    made = plan(there)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    make_experiment_directory(tmp_path / "one", made, there, "")
    (kept,) = (tmp_path / "one/trainer").rglob("mine.py")
    assert kept.read_text() == "x = 1\n"
    (tmp_path / "mine.py").write_text("x = 2\n")
    with pytest.raises(UsageError, match=r"mine\.py changed while the experiment was planned"):
        make_experiment_directory(tmp_path / "two", made, there, "")
    assert not (tmp_path / "two").exists()
