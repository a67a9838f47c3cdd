"""`resume` says that a user's files have changed since the plan, and which ones the remaining runs use."""

import pytest
from msgspec.structs import replace
from support.journals.ready_journals import planted_effect
from support.journals.synthetic import started
from support.plans import fake_plans

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.contracts.worker_order import RewardCode
from esper_ab.control.changed_code import check_command_files, notices
from esper_ab.control.experiment_run import check_code
from esper_ab.journal.events import TrainerMended
from esper_ab.journal.fold import begin, fold


def with_trainer(history, root, reference):
    """Let the history's plan have a trainer, whose files are those in `root` as they are now."""
    facts = TrainerFacts(root=str(root), files=("train.py",), sha256=source_sha256(root, ["train.py"]))
    plan = history.plan
    plan = replace(plan, trainer=facts, experiment=replace(plan.experiment, trainer=reference))
    history.started = replace(history.started, plan=plan)
    return history


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("lr = 1\n")
    return file


def test_unchanged_files_are_not_mentioned(script, tmp_path):
    history = with_trainer(fold(planted_effect()), tmp_path, "train.py")
    assert list(notices(tmp_path / "runs", history, [])) == []


def test_a_trainer_that_changed_after_a_complete_seed_is_not_used(script, tmp_path):
    history = with_trainer(fold(planted_effect()), tmp_path, "train.py")
    script.write_text("lr = 2\n")
    (notice,) = notices(tmp_path / "runs", history, [])
    assert notice == (
        "train.py has changed since the experiment was planned, but seeds are complete: all runs use the copy in "
        f"{tmp_path / 'runs/trainer'}; launch a new experiment to use the change"
    )


def test_a_removed_trainer_counts_as_changed(script, tmp_path):
    history = with_trainer(fold(planted_effect()), tmp_path, "train.py")
    script.unlink()
    (notice,) = notices(tmp_path / "runs", history, [])
    assert notice.startswith("train.py has changed since the experiment was planned")


COMMAND = "python train.py --seed {seed} --out {out}"


def test_a_changed_file_of_a_command_is_refused_once_a_seed_is_complete(script, tmp_path):
    history = with_trainer(fold(planted_effect()), tmp_path, COMMAND)
    check_code(tmp_path, history, allowed=True)
    script.write_text("lr = 2\n")
    with pytest.raises(UsageError, match=rf"^train.py in {tmp_path} has changed since .*; restore the earlier"):
        check_code(tmp_path, history, allowed=True)


def test_a_changed_file_of_a_command_is_used_before_a_seed_is_complete_unless_it_is_gone(script, tmp_path):
    history = with_trainer(begin(started(fake_plans.plan())), tmp_path, COMMAND)
    script.write_text("lr = 2\n")
    check_command_files(history)
    script.unlink()
    with pytest.raises(UsageError, match="has changed since"):
        check_command_files(history)


@pytest.mark.parametrize("reference", ["train.py", "train.py:train"])
def test_a_changed_file_that_was_copied_is_not_refused(script, tmp_path, reference):
    history = with_trainer(fold(planted_effect()), tmp_path, reference)
    script.write_text("lr = 2\n")
    check_command_files(history)


@pytest.mark.parametrize(
    ("earlier_runs", "ending"),
    [
        ((), "use it as it is now, which was not rehearsed"),
        (("a/0",), "use it as it is now, which was not rehearsed; a/0 has records made with the earlier one"),
        (
            ("a/0", "b/0"),
            "use it as it is now, which was not rehearsed; a/0 and b/0 have records made with the earlier one",
        ),
    ],
)
def test_a_trainer_that_changed_before_a_complete_seed_is_used(script, tmp_path, earlier_runs, ending):
    history = with_trainer(begin(started(fake_plans.plan())), tmp_path, "train.py")
    script.write_text("lr = 2\n")
    event = TrainerMended(sha256="0" * 64, before=earlier_runs)
    (notice,) = notices(tmp_path / "runs", history, [event])
    assert notice == f"train.py has changed since the experiment was planned: unfinished runs {ending}"


def test_a_changed_reward_is_not_used(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("scale = 1\n")
    copies = tmp_path / "runs/rewards/1"
    copies.mkdir(parents=True)
    (copies / "mine.py").write_text("scale = 1\n")
    code = RewardCode(
        reference=f"{mine}:reward", folder="rewards/1", file="mine.py", sha256=source_sha256(tmp_path, ["mine.py"])
    )
    plan = fake_plans.plan()
    runs = tuple(replace(spec, reward_code=(code,)) for spec in plan.blocks[0].runs)
    history = begin(started(replace(plan, blocks=(replace(plan.blocks[0], runs=runs),))))
    assert list(notices(tmp_path / "runs", history, [])) == []
    mine.write_text("scale = 2\n")
    assert list(notices(tmp_path / "runs", history, [])) == [
        f"{mine} has changed since the experiment was planned: all runs use the copy in {copies}; launch a new "
        "experiment to use the change"
    ]
