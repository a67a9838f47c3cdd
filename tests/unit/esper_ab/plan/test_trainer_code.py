from pathlib import Path

import msgspec
import pytest
from support.plans.requests import FACTS, asked, machine, planned, rehearsed, toml

from esper_ab.campaign.experiment_directory import make_experiment_directory
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.source_files import source_sha256
from esper_ab.kinds.trainer.rehearsed import in_sentences
from esper_ab.plan.blocks import extend
from esper_ab.plan.estimate import estimate
from esper_ab.plan.kind import NotesKind
from esper_ab.plan.plan import Plan
from esper_ab.plan.settings_toml import experiment_toml, run_toml

PYTHON = {"trainer": "mine.py", "outcome_better": "lower", "margin": 0.5, "outcome_range": "0..9", "episodes": 3}
COMMAND = PYTHON | {"trainer": "run {seed} {lr} {out}", "outcome": "r.json:x", "episodes": 1}
GROUPS = ("slow:trainer.lr=0.1", "fast:trainer.lr=0.2")


def plan_trainer(this_machine: Machine | None = None, **changes: object) -> Plan:
    return planned(asked(group=GROUPS, **PYTHON | changes), this_machine or rehearsed())


def test_the_settings_of_a_trainer_run_have_the_types_found_by_the_preflight() -> None:
    typed_settings = {"slow": {"lr": 0.1, "deep": True}, "fast": {"lr": 0.2, "deep": True}}
    specs = {
        spec.ref.name: spec for block in plan_trainer(rehearsed(settings=typed_settings)).blocks for spec in block.runs
    }
    spec = specs["fast/1"]
    assert (spec.settings.trainer, spec.eval_episodes, spec.episodes, spec.n_envs) == (typed_settings["fast"], 4, 3, 1)
    assert spec.trainer is not None
    assert (spec.trainer.out, spec.trainer.folder) == ("runs/fast-1/out", f"trainer/{'a' * 12}")
    assert spec.trainer.worst == 9.0
    assert (spec.trainer.resumes, spec.trainer.metrics, spec.ref.controller) == (True, {"Loss": "loss"}, "trainer")
    assert len({spec.trainer.out for spec in specs.values() if spec.trainer}) == len(specs)


def test_added_seeds_have_their_own_folders() -> None:
    first_plan = plan_trainer()
    extension = extend(first_plan, first_plan.design, 6, 2)
    assert [spec.trainer.out for block in extension.blocks for spec in block.runs if spec.trainer] == [
        f"runs/{spec.ref.group_id}-{spec.ref.replicate}/out" for block in extension.blocks for spec in block.runs
    ]


def test_a_changed_trainer_changes_the_digest() -> None:
    assert len({plan_trainer(rehearsed(sha256=letter * 64)).digest for letter in "aba"}) == 2


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("evaluation", "in error between two groups"),
        ("curve-mean", "in error, averaged over all points, between two"),
        ("last-tenth", "in error, averaged over the last tenth of the points, between two groups"),
        ("last-third", "in error, averaged over the last third of the points, between two groups"),
    ],
)
def test_the_estimand_of_a_trainer_names_the_declared_outcome(outcome: str, words: str) -> None:
    assert words in plan_trainer(outcome_over=outcome).estimand


def test_the_estimand_of_a_trainer_uses_no_terms_of_growth() -> None:
    estimand = plan_trainer().estimand
    assert estimand == (
        "Mean difference in error between two groups, in J, over the same seeds for both groups; lower is better."
    )
    assert not [word for word in ("accuracy", "policy", "points", "host") if word in estimand]


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
def test_a_note_reports_the_findings_of_the_rehearsal(changes: dict[str, object], words: str) -> None:
    trainer_plan = plan_trainer(rehearsed(**changes))
    assert words in trainer_plan.notes[0]
    assert trainer_plan.trainer is not None
    assert trainer_plan.notes[0] == in_sentences(trainer_plan.trainer, "/mine.py")


def test_the_first_screen_mentions_that_idle_runs_are_ended() -> None:
    assert not any("--end-idle" in note for note in plan_trainer(rehearsed()).notes)
    trainer_plan = plan_trainer(rehearsed(ends_idle=True))
    assert [note for note in trainer_plan.notes[: trainer_plan.limits] if note.startswith("--end-idle: ")]


def test_a_plan_states_the_summary_of_a_curve() -> None:
    plan = plan_trainer(rehearsed(), **COMMAND, outcome_summary="mean-last-10")
    assert {run.trainer and run.trainer.outcome_summary for block in plan.blocks for run in block.runs} == {
        "mean-last-10"
    }
    assert (
        of_kind(plan.kind, NotesKind).size(plan.experiment).endswith(" outcomes, the mean of the last 10 values of x")
    )


def test_only_an_explicit_summary_changes_the_digest_of_a_plan() -> None:
    by_default, last, largest = (
        plan_trainer(rehearsed(), **COMMAND, outcome_summary=text) for text in ("", "last", "max")
    )
    assert len({plan.digest for plan in (by_default, last, largest)}) == 3
    texts = [experiment_toml(plan, rehearsed()) for plan in (by_default, largest)]
    assert ["outcome_summary" in text for text in texts] == [False, True]


def test_a_note_names_the_files_of_a_command_that_are_checked() -> None:
    files = msgspec.structs.replace(FACTS, files=("train.py", "conf.yaml"))
    assert "starts only if train.py, conf.yaml has not changed since; other" in in_sentences(files, COMMAND["trainer"])
    no_files = msgspec.structs.replace(FACTS, files=())
    assert "changes of its code would go unnoticed" in in_sentences(no_files, COMMAND["trainer"])
    assert "not checked" not in in_sentences(files, "/mine.py"), "its files are copied"


def test_equal_groups_must_be_identical_if_the_trainer_is_repeatable() -> None:
    equal_settings = {"a": {"lr": 0.1}, "b": {"lr": 0.1}}
    experiment = asked("a", "b", sets=("trainer.lr=0.1",), **PYTHON)
    exact_plan = planned(experiment, rehearsed(settings=equal_settings))
    inexact_plan = planned(experiment, rehearsed(settings=equal_settings, repeats=False))
    assert any("their records must be identical" in note for note in exact_plan.notes)
    assert not any("identical" in note for note in inexact_plan.notes)
    assert any("differ by chance alone" in note for note in inexact_plan.notes)


def test_the_estimate_of_a_run_follows_from_the_rehearsal() -> None:
    trainer_plan = plan_trainer()
    cost = estimate(trainer_plan.experiment, trainer_plan.lanes, rehearsed())
    assert cost.step_s == 2.0
    assert cost.duration_s - cost.start_up_s == pytest.approx(6 * (3 * 2.0 + 1.0))


@pytest.mark.parametrize("settings", [PYTHON, COMMAND])
def test_the_written_settings_of_a_trainer_give_the_same_plan(tmp_path: Path, settings: dict[str, object]) -> None:
    this_machine = rehearsed(evaluations=1)
    trainer_plan = planned(asked(group=GROUPS, **settings), this_machine)
    second_plan = planned(asked(toml=toml(tmp_path, experiment_toml(trainer_plan, this_machine))), this_machine)
    assert second_plan.digest == trainer_plan.digest
    (spec,) = [spec for spec in trainer_plan.blocks[0].runs if spec.ref.group_id == "fast"]
    run_file = toml(tmp_path, run_toml(trainer_plan, spec))
    both_groups = asked("fast", "beside", group=("beside:trainer.lr=0.3",), toml=run_file)
    assert {group.name: group.settings.trainer for group in both_groups.groups} == {
        "fast": {"lr": 0.2},
        "beside": {"lr": "0.3"},
    }


def test_an_experiment_keeps_a_copy_of_the_rehearsed_trainer(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    this_machine = rehearsed(root=str(tmp_path), sha256=source_sha256(tmp_path, ("mine.py",)))
    trainer_plan = plan_trainer(this_machine)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    make_experiment_directory(tmp_path / "one", trainer_plan, this_machine, "")
    (copy,) = (tmp_path / "one/trainer").rglob("mine.py")
    assert copy.read_text() == "x = 1\n"
    (tmp_path / "mine.py").write_text("x = 2\n")
    with pytest.raises(UsageError, match=r"mine\.py changed while the experiment was planned"):
        make_experiment_directory(tmp_path / "two", trainer_plan, this_machine, "")
    assert not (tmp_path / "two").exists()


def plan_of_command(this_machine: Machine, **changes: object) -> Plan:
    facts = rehearsed()
    with_trainer = msgspec.structs.replace(this_machine, trainer=facts.trainer, tasks=facts.tasks)
    return planned(asked(group=GROUPS, **COMMAND | changes), with_trainer)


def test_a_run_of_a_command_has_the_requested_number_of_gpus() -> None:
    plan = plan_of_command(machine(gpus=5), devices_per_run=2)
    assert [lane.devices for lane in plan.lanes] == [("cuda:0", "cuda:1"), ("cuda:2", "cuda:3")]
    assert all(len(set(filter(None, lane.uuids))) == 2 for lane in plan.lanes)
    assert plan.idle_devices == ("cuda:4",)
    assert any(note.startswith("2 devices per run: a run sees 2 GPUs") for note in plan.notes)


def test_a_run_of_a_command_can_occupy_several_cores() -> None:
    lanes = {per_run: len(plan_of_command(machine(cores=8), devices_per_run=per_run).lanes) for per_run in (2, 4)}
    assert lanes == {2: 4, 4: 2}
    plan = plan_of_command(machine(cores=8), devices_per_run=4)
    assert any("takes the place of 4 on the CPU, whatever it uses" in note for note in plan.notes)


def test_more_devices_per_run_than_the_pool_has_are_refused() -> None:
    with pytest.raises(UsageError, match=r"devices-per-run 3, but the pool has 2 \(cuda:0, cuda:1\); at most 2"):
        plan_of_command(machine(gpus=2), devices_per_run=3)
