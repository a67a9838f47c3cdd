import hashlib
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.workers import trainers
from support.worlds.tensor_world import quiet

from esper_ab.contracts.errors import CodeChanged
from esper_ab.contracts.records import EpisodeRecord, EvaluationRecord
from workers.kinds.trainer.kind import open_session
from workers.kinds.trainer.running import ScriptFailed
from workers.kinds.trainer.session import STATE_FORMAT, SavedState, TrainerSession
from workers.storage import durable


def python(
    tmp_path: Path, settings: dict[str, Any], *, old_text: str = "", new_text: str = "", **changes: Any
) -> TrainerSession:
    """Open a session of the trainer in which `new_text` replaces `old_text`."""
    path = Path(trainers.python_file(tmp_path))
    path.write_text(path.read_text().replace(old_text, new_text) if old_text else path.read_text())
    return open_session(trainers.spec(str(path), tmp_path, settings, **changes), tmp_path, ("",))


def scripted(tmp_path: Path, lr: str, **changes: Any) -> TrainerSession:
    spec = trainers.spec(trainers.command(tmp_path), tmp_path, {"lr": lr}, directory=tmp_path, **changes)
    return open_session(spec, tmp_path, ("",))


def trained(session: TrainerSession, folder: Path, first_point: int = 0) -> list[EpisodeRecord | EvaluationRecord]:
    records = [session.train(point, quiet, quiet) for point in range(first_point, session.spec.episodes)]
    return [*records, session.evaluate(folder, quiet)]


def test_a_trainer_run_has_a_record_per_point(tmp_path: Path) -> None:
    *points, evaluation = trained(python(tmp_path, {"lr": 2.0}), tmp_path)
    assert [point.episode for point in points] == [0, 1, 2]
    outcomes = [point.envs[0].outcome for point in points]
    assert outcomes == sorted(outcomes)
    assert [point.envs[0].measures for point in points] == [{"loss_train": -outcome} for outcome in outcomes]
    assert [episode.result.outcome for episode in evaluation.episodes] == [outcomes[-1]] * 3
    assert (tmp_path / "policies/a/0.pt").is_file()


@pytest.mark.parametrize("resume_point", [1, 2, 3])
def test_a_trainer_run_resumed_at_any_point_gives_the_same_records(tmp_path: Path, resume_point: int) -> None:
    whole = trained(python(tmp_path, {}), tmp_path)
    first_session = python(tmp_path, {})
    for point in range(resume_point):
        first_session.train(point, quiet, quiet)
    checkpoint = first_session.checkpoint()
    assert checkpoint is not None
    resumed_session = python(tmp_path, {})
    resumed_session.resume_from(checkpoint)
    assert [record.digest for record in trained(resumed_session, tmp_path, resume_point)] == [
        record.digest for record in whole[resume_point:]
    ]


def test_a_foreign_checkpoint_of_a_trainer_is_refused(tmp_path: Path) -> None:
    session = python(tmp_path, {})
    saved_state = SavedState(format=STATE_FORMAT, point=2, state=b"no state of a trainer")
    older_state = SavedState(format=STATE_FORMAT - 1, point=2, state=b"")
    for foreign_bytes in (
        msgspec.msgpack.encode(saved_state),
        msgspec.msgpack.encode(older_state),
        b"",
        b"no checkpoint",
    ):
        with pytest.raises(durable.FOREIGN):
            session.resume_from(foreign_bytes)
    assert session.checkpoint() is None


def test_a_state_that_could_not_be_saved_is_not_evaluated(tmp_path: Path) -> None:
    """On a full disk the evaluation is asked for again and again; what the user's code does is done once."""
    session = python(
        tmp_path, {}, old_text="def evaluate(run, state):", new_text="def evaluate(run, state):\n    run.alive(9)"
    )
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


def test_digests_of_trainer_runs_depend_on_settings_and_seed(tmp_path: Path) -> None:
    explicit_records = trained(python(tmp_path, {"lr": 0.1}), tmp_path)
    by_default = trained(python(tmp_path, {}), tmp_path)
    other_seed = trained(python(tmp_path, {}, rng_seed=1), tmp_path)
    assert [record.digest for record in explicit_records] == [record.digest for record in by_default]
    assert not {record.digest for record in explicit_records} & {record.digest for record in other_seed}


def test_a_trainer_without_resumption_has_a_checkpoint_only_at_its_end(tmp_path: Path) -> None:
    session = python(tmp_path, {}, resumes=False)
    states = [session.train(point, quiet, quiet) and session.checkpoint() for point in range(3)]
    assert [state is None for state in states] == [True, True, False]
    assert not session.stateless


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ('float("nan")', "nan"),
        ("1e200", r"1e\+200"),
        ("-1e41", r"-1e\+41"),
        ("10**400", "inf"),
    ],
)
def test_a_trainer_outcome_without_a_number_is_refused_or_replaced(tmp_path: Path, value: str, complaint: str) -> None:
    change = {"old_text": 'float("nan") if fault == "breaks" else x', "new_text": value}
    record = python(tmp_path, {}, worst=-5.0, **change).train(0, quiet, quiet)
    assert (record.envs[0].outcome, record.envs[0].failed) == (-5.0, True)
    with pytest.raises(
        ValueError, match=rf"the outcome is {complaint}, not a number from -1e\+40 to 1e\+40; to count such"
    ):
        python(tmp_path, {}, **change).train(0, quiet, quiet)


def test_a_changed_copy_of_a_trainer_is_refused(tmp_path: Path) -> None:
    spec = trainers.spec(trainers.python_file(tmp_path), tmp_path, {})
    Path(trainers.python_file(tmp_path)).write_text("raise RuntimeError('the next idea')")
    assert open_session(spec, tmp_path, ("",)).train(0, quiet, quiet).episode == 0
    (tmp_path / "copy" / "mine.py").write_text(trainers.PYTHON + "\n")
    with pytest.raises(ValueError, match=r"trainer mine.py: its copy in .* was changed"):
        open_session(spec, tmp_path, ("",))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"eval_episodes": 4}, "evaluate returned 3 outcomes; 4 are planned"),
        (
            {"old_text": ', "Loss/train": -x', "new_text": ""},
            "point 0 has the metrics none in addition to the outcome, but",
        ),
        ({"old_text": "run.points)", "new_text": "2)"}, r"ended before point 2 of 3; it must yield run.points"),
    ],
)
def test_a_run_that_differs_from_its_plan_fails(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        trained(python(tmp_path, {}, **changes), tmp_path)


def test_the_outcome_of_a_command_is_read_from_the_files_of_its_script(tmp_path: Path) -> None:
    point, evaluation = trained(scripted(tmp_path, "3"), tmp_path)
    repeated_point, _ = trained(scripted(tmp_path, "3"), tmp_path)
    assert 3.0 < point.envs[0].outcome < 4.0
    assert [episode.result.outcome for episode in evaluation.episodes] == [point.envs[0].outcome]
    assert repeated_point.digest == point.digest
    lines = (tmp_path / "logs/a-0.log").read_text().splitlines()
    assert [line for line in lines if not line.startswith("$ ")] == ["training with 3"] * 2
    assert [path.name for path in (tmp_path / "runs/a-0/out").iterdir()] == ["r.json"]


def test_evaluating_a_command_does_not_run_the_script_again(tmp_path: Path) -> None:
    session = scripted(tmp_path, "3")
    record = session.train(0, quiet, quiet)
    checkpoint = session.checkpoint()
    assert checkpoint is not None
    resumed_session = scripted(tmp_path, "3")
    resumed_session.resume_from(checkpoint)
    assert resumed_session.evaluate(tmp_path, quiet).episodes[0].result.outcome == record.envs[0].outcome


def test_a_failed_or_edited_script_is_an_error(tmp_path: Path) -> None:
    session = scripted(tmp_path, "-1")
    with pytest.raises(ScriptFailed, match=r"exit status 1: .*ValueError: lr must be positive"):
        session.train(0, quiet, quiet)
    (tmp_path / "train.py").write_text("print('done')")
    with pytest.raises(ScriptFailed, match=r"the script left no r.json in {out}"):
        session.train(0, quiet, quiet)
    with pytest.raises(CodeChanged, match=r"train.py in .*: changed since the experiment was planned"):
        open_session(session.spec, tmp_path, ("",))


RESUMES = """
import json, pathlib, sys
seed, out, *resume = sys.argv[1:]
assert (resume == []) == (not pathlib.Path(out, "state").exists())
done = int(pathlib.Path(resume[1]).read_text()) if resume else 0
pathlib.Path(out, "state").write_text(str(done + 1))
assert done, "ended before its result"
json.dump({"return": done + 1}, open(out + "/r.json", "w"))
"""


def test_a_command_continues_from_the_files_of_an_interrupted_attempt(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RESUMES)
    command = f"{sys.executable} train.py {{seed}} {{out}} --resume {{resume}}/state"
    spec = trainers.spec(command, tmp_path, {}, directory=tmp_path)
    with pytest.raises(ScriptFailed, match="ended before its result"):
        open_session(spec, tmp_path, ("",)).train(0, quiet, quiet)
    point = open_session(spec, tmp_path, ("",)).train(0, quiet, quiet)
    assert point.envs[0].outcome == 2.0


@pytest.mark.parametrize(
    ("uuids", "device"), [(("",), "cpu"), (("", ""), "cpu"), (("GPU-a",), "cuda:0"), (("GPU-a", "GPU-b"), "cuda")]
)
def test_a_python_trainer_is_given_the_device_of_its_run(tmp_path: Path, uuids: tuple[str, ...], device: str) -> None:
    path = Path(trainers.python_file(tmp_path))
    path.write_text(path.read_text().replace("run.alive(1)", f"assert run.device == {device!r}"))
    spec = trainers.spec(str(path), tmp_path, {})
    assert open_session(spec, tmp_path, uuids).train(0, quiet, quiet).episode == 0


def test_a_command_is_run_with_the_placeholders_of_its_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import json, sys; print(*sys.argv[2:]); json.dump({'return': 1}, open(sys.argv[1], 'w'))"
    )
    command = f"{sys.executable} train.py {{out_file}} {{name}} {{device}}"
    spec = trainers.spec(command, tmp_path, {}, directory=tmp_path)
    spec = msgspec.structs.replace(spec, trainer=msgspec.structs.replace(spec.trainer, outcome="return"))
    open_session(spec, tmp_path, ("GPU-a", "GPU-b")).train(0, quiet, quiet)
    assert (tmp_path / "logs/a-0.log").read_text().splitlines()[1:] == ["a-0 cuda"]


@pytest.mark.parametrize(("summary", "outcome"), [("", 3.0), ("mean-last-2", 3.5), ("max", 4.0)])
def test_the_outcome_of_a_run_is_the_declared_summary_of_its_curve(
    tmp_path: Path, summary: str, outcome: float
) -> None:
    (tmp_path / "train.py").write_text("for score in (1, 4, 3): print('score', score)")
    spec = trainers.spec(f"{sys.executable} train.py {{seed}}", tmp_path, {}, directory=tmp_path)
    order = msgspec.structs.replace(spec.trainer, outcome="stdout:score", outcome_summary=summary)
    spec = msgspec.structs.replace(spec, trainer=order)
    assert open_session(spec, tmp_path, ("",)).train(0, quiet, quiet).envs[0].outcome == outcome
