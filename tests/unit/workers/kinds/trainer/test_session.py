import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.workers import trainers
from support.worlds.tensor_world import quiet

from esper_ab.contracts.errors import CodeChanged
from esper_ab.contracts.records import EpisodeRecord, EvaluationRecord
from workers.kinds.trainer.kind import open_session
from workers.kinds.trainer.script import ScriptFailed
from workers.kinds.trainer.session import STATE_FORMAT, SavedState, TrainerSession
from workers.storage import durable


def python(tmp_path: Path, settings: dict[str, Any], *, old: str = "", new: str = "", **changes: Any) -> TrainerSession:
    """Of a trainer in which `new` stands for `old`."""
    path = Path(trainers.python_file(tmp_path))
    path.write_text(path.read_text().replace(old, new) if old else path.read_text())
    return open_session(trainers.spec(str(path), tmp_path, settings, **changes), tmp_path, "cpu", ("",))


def scripted(tmp_path: Path, lr: str, **changes: Any) -> TrainerSession:
    spec = trainers.spec(trainers.command(tmp_path), tmp_path, {"lr": lr}, directory=tmp_path, **changes)
    return open_session(spec, tmp_path, "cpu", ("",))


def trained(session: TrainerSession, folder: Path, first: int = 0) -> list[EpisodeRecord | EvaluationRecord]:
    records = [session.train(point, quiet, quiet) for point in range(first, session.spec.episodes)]
    return [*records, session.evaluate(folder, quiet)]


def test_a_run_has_a_record_per_point_and_one_of_its_evaluation(tmp_path: Path) -> None:
    *points, evaluation = trained(python(tmp_path, {"lr": 2.0}), tmp_path)
    assert [one.episode for one in points] == [0, 1, 2]
    outcomes = [one.envs[0].outcome for one in points]
    assert outcomes == sorted(outcomes)
    assert [one.envs[0].measures for one in points] == [{"loss_train": -outcome} for outcome in outcomes]
    assert [played.result.outcome for played in evaluation.episodes] == [outcomes[-1]] * 3
    assert (tmp_path / "policies/a/0.pt").is_file()


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_run_taken_up_at_any_point_gives_the_same_records(tmp_path: Path, at: int) -> None:
    whole = trained(python(tmp_path, {}), tmp_path)
    first = python(tmp_path, {})
    for point in range(at):
        first.train(point, quiet, quiet)
    checkpoint = first.checkpoint()
    assert checkpoint is not None
    again = python(tmp_path, {})
    again.resume_from(checkpoint)
    assert [one.digest for one in trained(again, tmp_path, at)] == [one.digest for one in whole[at:]]


def test_a_run_that_cannot_be_taken_up_is_as_before(tmp_path: Path) -> None:
    session = python(tmp_path, {})
    saved = SavedState(format=STATE_FORMAT, point=2, state=b"no state of a trainer")
    older = SavedState(format=STATE_FORMAT - 1, point=2, state=b"")
    for foreign in (msgspec.msgpack.encode(saved), msgspec.msgpack.encode(older), b"", b"no checkpoint"):
        with pytest.raises(durable.FOREIGN):
            session.resume_from(foreign)
    assert session.checkpoint() is None


def test_a_state_that_cannot_be_saved_is_not_evaluated(tmp_path: Path) -> None:
    """On a full disk the evaluation is asked for again and again; what the user's code does is done once."""
    session = python(tmp_path, {}, old="def evaluate(run, state):", new="def evaluate(run, state):\n    run.alive(9)")
    steps = list[int]()
    for point in range(3):
        session.train(point, quiet, quiet)
    (tmp_path / "policies").write_text("a file where a folder has to be")
    with pytest.raises(OSError, match="is not a folder"):
        session.evaluate(tmp_path, steps.append)
    assert steps == []
    (tmp_path / "policies").unlink()
    record = session.evaluate(tmp_path, steps.append)
    assert steps == [9]
    assert record.policy_sha256 == hashlib.sha256((tmp_path / record.policy_file).read_bytes()).hexdigest()


def test_groups_of_equal_settings_have_equal_digests_and_seeds_have_not(tmp_path: Path) -> None:
    one = trained(python(tmp_path, {"lr": 0.1}), tmp_path)
    same = trained(python(tmp_path, {}), tmp_path)
    other = trained(python(tmp_path, {}, rng_seed=1), tmp_path)
    assert [record.digest for record in one] == [record.digest for record in same]
    assert not {record.digest for record in one} & {record.digest for record in other}


def test_a_trainer_that_would_begin_anew_has_a_state_at_its_end_only(tmp_path: Path) -> None:
    session = python(tmp_path, {}, resumes=False)
    states = [session.train(point, quiet, quiet) and session.checkpoint() for point in range(3)]
    assert [state is None for state in states] == [True, True, False]
    assert not session.stateless


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('float("nan")', "nan"),
        ("1e200", r"1e\+200"),
        ("-1e41", r"-1e\+41"),
        ("10**400", "inf"),
    ],
)
def test_an_outcome_that_is_no_number_is_the_worst_one_or_an_error(tmp_path: Path, value: str, said: str) -> None:
    how = {"old": 'float("nan") if fault == "breaks" else x', "new": value}
    record = python(tmp_path, {}, worst=-5.0, **how).train(0, quiet, quiet)
    assert (record.envs[0].outcome, record.envs[0].failed) == (-5.0, True)
    with pytest.raises(ValueError, match=rf"the outcome is {said}, not a number from -1e\+40 to 1e\+40; to count such"):
        python(tmp_path, {}, **how).train(0, quiet, quiet)


def test_a_copy_that_was_changed_is_not_trained(tmp_path: Path) -> None:
    spec = trainers.spec(trainers.python_file(tmp_path), tmp_path, {})
    Path(trainers.python_file(tmp_path)).write_text("raise RuntimeError('the next idea')")
    assert open_session(spec, tmp_path, "cpu", ("",)).train(0, quiet, quiet).episode == 0
    (tmp_path / "copy" / "mine.py").write_text(trainers.PYTHON + "\n")
    with pytest.raises(ValueError, match=r"trainer mine.py: its copy in .* was changed"):
        open_session(spec, tmp_path, "cpu", ("",))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"eval_episodes": 4}, "evaluate returned 3 outcomes; 4 are planned"),
        ({"old": ', "Loss/train": -x', "new": ""}, "point 0 has the metrics none in addition to the outcome, but"),
        ({"old": "run.points)", "new": "2)"}, r"ended before point 2 of 3; it must yield run.points"),
    ],
)
def test_a_run_that_is_not_as_planned_says_so(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        trained(python(tmp_path, {}, **changes), tmp_path)


def test_a_command_has_the_outcome_that_its_script_left(tmp_path: Path) -> None:
    point, evaluation = trained(scripted(tmp_path, "3"), tmp_path)
    again, _ = trained(scripted(tmp_path, "3"), tmp_path)
    assert 3.0 < point.envs[0].outcome < 4.0
    assert [played.result.outcome for played in evaluation.episodes] == [point.envs[0].outcome]
    assert again.digest == point.digest
    lines = (tmp_path / "logs/a-0.log").read_text().splitlines()
    assert [line for line in lines if not line.startswith("$ ")] == ["training with 3"] * 2
    assert [path.name for path in (tmp_path / "runs/a-0/out").iterdir()] == ["r.json"]


def test_a_command_that_has_ended_is_not_run_again_for_its_evaluation(tmp_path: Path) -> None:
    session = scripted(tmp_path, "3")
    record = session.train(0, quiet, quiet)
    checkpoint = session.checkpoint()
    assert checkpoint is not None
    again = scripted(tmp_path, "3")
    again.resume_from(checkpoint)
    assert again.evaluate(tmp_path, quiet).episodes[0].result.outcome == record.envs[0].outcome


def test_a_script_that_fails_or_was_edited_is_named(tmp_path: Path) -> None:
    session = scripted(tmp_path, "-1")
    with pytest.raises(ScriptFailed, match=r"exit status 1: .*ValueError: lr must be positive"):
        session.train(0, quiet, quiet)
    (tmp_path / "train.py").write_text("print('done')")
    with pytest.raises(ScriptFailed, match=r"the script left no r.json in {out}"):
        session.train(0, quiet, quiet)
    with pytest.raises(CodeChanged, match=r"train.py in .*: changed since the experiment was planned"):
        open_session(session.spec, tmp_path, "cpu", ("",))
