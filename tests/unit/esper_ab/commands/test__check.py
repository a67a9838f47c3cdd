"""A check finds files that differ from their record; a repair truncates the journal and keeps the removed bytes."""

import hashlib
import json
import os
import tracemalloc
from contextlib import closing, nullcontext

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.journals import ready_journals, synthetic
from support.journals.audited_journals import evaluations

from esper_ab.commands import _check
from esper_ab.commands._check import examine
from esper_ab.commands._check_text import describe
from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.commands.tidy import repair
from esper_ab.contracts.records import Checkpoint
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import TrainerOrder
from esper_ab.contracts.worker_order import RewardCode
from esper_ab.journal.events import EpisodeRecorded, RunEvaluated
from esper_ab.journal.file import Journal
from esper_ab.journal.fold import fold
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME, Lock
from esper_ab.settings.settings_file import settings_sha256

POLICY = b"a policy"
SHA256 = hashlib.sha256(POLICY).hexdigest()  # of every checkpoint, too
RUN = "shaped/0"
NEWEST = f"checkpoints/{RUN}/3.pt"  # of the run that is stopped


def with_files(experiment_dir, events):
    """The journal of `events` with the files it vouches for: every policy, the last two checkpoints of one run."""
    changed_events = []
    checkpoints = []
    for event in events:
        if isinstance(event, RunEvaluated):
            write_file(experiment_dir, event.record.policy_file)
            changed_events.append(RunEvaluated(record=replace(event.record, policy_sha256=SHA256)))
        elif isinstance(event, EpisodeRecorded) and event.record.run.name == RUN:
            milestone = event.record.episode + 1
            checkpoints.append(f"checkpoints/{RUN}/{milestone}.pt")
            checkpoint = Checkpoint(milestone=milestone, file=checkpoints[-1], sha256=SHA256, size_bytes=len(POLICY))
            changed_events.append(replace(event, checkpoint=checkpoint))
        else:
            changed_events.append(event)
    for file in checkpoints[-2:]:
        write_file(experiment_dir, file)
    return ready_journals.write(experiment_dir, changed_events)


def write_file(experiment_dir, file, data=POLICY):
    path = experiment_dir / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def in_progress():
    """One replicate, stopped after three of eight episodes."""
    events = ready_journals.one_replicate()
    third_episodes = [
        n for n, event in enumerate(events) if isinstance(event, EpisodeRecorded) and event.record.episode == 2
    ]
    return events[: third_episodes[-1] + 1]


@pytest.fixture
def finished(tmp_path):
    return with_files(tmp_path / "run", ready_journals.one_replicate())


@pytest.fixture
def stopped(tmp_path):
    return with_files(tmp_path / "run", in_progress())


def contents(experiment_dir):
    return {path: path.read_bytes() for path in experiment_dir.rglob("*") if path.is_file()}


def tidy(experiment_dir, *options):
    return invoke(group, ["tidy", str(experiment_dir), *options], "esper-ab")


def test_a_check_of_an_intact_directory_changes_nothing(finished, capsys):
    contents_before = contents(finished)
    assert tidy(finished, "--check") == 0
    assert capsys.readouterr().out.endswith("no damage found\n")
    assert repair(finished) == ""
    assert contents_before.items() <= contents(finished).items()


@pytest.mark.parametrize(("size", "words"), [(60, "0.1 kB"), (99_000, "99.0 kB"), (12_345_678, "12.3 MB")])
def test_a_check_says_that_tidy_would_remove_files_and_their_size(finished, size, words):
    findings = replace(examine(finished), removable=("checkpoints/a.pt",), removable_bytes=size)
    assert f"without --check, tidy would remove 1 file ({words}): checkpoints/a.pt" in describe(findings)


def test_a_torn_last_line_is_not_reported_as_damage(stopped):
    path = stopped / JOURNAL_NAME
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    examination = examine(stopped)
    assert (examination.exit_status, examination.damage, examination.lines_behind) == (0, "", 1)
    assert "resume cuts off" in describe(examination)
    repair(stopped)
    (torn_file,) = stopped.glob("*.torn-*")
    assert path.read_bytes() + torn_file.read_bytes() == data[:-5]


def damage(lines, kind, index):
    """The lines with the one at `index` flipped, gone, exchanged with the next one, or doubled."""
    match kind:
        case "flip":
            return [
                *lines[:index],
                lines[index][:20] + bytes([lines[index][20] ^ 1]) + lines[index][21:],
                *lines[index + 1 :],
            ]
        case "delete":
            return [*lines[:index], *lines[index + 1 :]]
        case "swap":
            return [*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]]
        case "double":
            return [*lines[: index + 1], *lines[index:]]


@given(kind=st.sampled_from(("flip", "delete", "swap", "double")), index=st.integers(1, 12))
def test_a_repair_moves_damaged_journal_lines_to_a_separate_file(tmp_path_factory, kind, index):
    experiment_dir = with_files(tmp_path_factory.mktemp("damaged") / "run", in_progress())
    path = experiment_dir / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    assert index + 1 < len(lines)
    intact_lines = index + (kind == "double")
    damaged_bytes = b"".join(damage(lines, kind, index))
    path.write_bytes(damaged_bytes)
    contents_before = contents(experiment_dir)

    examination = examine(experiment_dir)
    assert (examination.exit_status, examination.lines, examination.repairable) == (5, intact_lines, True)
    assert f"line {intact_lines + 1}:" in examination.damage
    assert examination.lines_behind == damaged_bytes.count(b"\n") - intact_lines
    assert f"esper-ab tidy {experiment_dir} --repair" in describe(examination)
    assert contents(experiment_dir) == contents_before  # looking changes nothing

    message = repair(experiment_dir)
    assert examine(experiment_dir).damage == ""
    (torn_file,) = experiment_dir.glob("*.torn-*")
    assert (
        message == f"cut {torn_file.stat().st_size} bytes off the journal after line {intact_lines}; "
        f"they are in {torn_file.name}; "
    )
    assert path.read_bytes() == b"".join(lines[:intact_lines])
    assert path.read_bytes() + torn_file.read_bytes() == damaged_bytes
    assert all(path.is_file() for path in contents_before)
    journal, events = Journal.take_up(experiment_dir, list)
    journal.close()
    assert len(events) == intact_lines


def test_a_journal_without_an_intact_line_is_not_repaired(stopped, capsys):
    path = stopped / JOURNAL_NAME
    damaged_bytes = b"x" + path.read_bytes()
    path.write_bytes(damaged_bytes)
    assert tidy(stopped, "--check") == 5
    assert "would not repair" in capsys.readouterr().out
    assert tidy(stopped, "--repair") == 5
    assert path.read_bytes() == damaged_bytes


def test_a_repair_keeps_journal_lines_of_another_version(stopped):
    class Unknown(msgspec.Struct, frozen=True, tag_field="kind", tag="of_tomorrow"):
        """An event that only a later version knows."""

    journal, _ = Journal.take_up(stopped, list)
    journal.append(Unknown())
    journal.close()
    data = (stopped / JOURNAL_NAME).read_bytes()
    assert tidy(stopped, "--repair") == 5
    examination = examine(stopped)
    assert (examination.exit_status, examination.repairable) == (5, False)
    assert "read it with the version that wrote it" in examination.damage
    assert (stopped / JOURNAL_NAME).read_bytes() == data


@pytest.mark.parametrize("kind", ["flip", "cut", "missing"])
def test_a_check_names_a_policy_that_differs_from_its_record(finished, kind, capsys):
    policy = load(finished).history.runs[RUN].evaluation.policy_file
    spoil(finished / policy, kind)
    assert tidy(finished, "--check", "--json") == 5
    (examination,) = json.loads(capsys.readouterr().out)
    ((file, problem),) = examination["faults"].items()
    assert (file, problem.partition(": ")[0]) == (policy, f"policy of {RUN}")
    assert repair(finished) == ""


@pytest.mark.parametrize(("field", "folder"), [("reward_code", "rewards/x"), ("trainer", "trainer/x")])
@pytest.mark.parametrize("damaged_file", ["mine.py", "helper.py"])
def test_a_check_names_a_copy_of_user_code_that_differs_from_the_plan(tmp_path, field, folder, damaged_file, capsys):
    """The file that was named, and one that it imports."""
    files = {"mine.py": b"import helper", "helper.py": b"bonus = 1"}
    copies = {write_file(tmp_path / "run", f"{folder}/{name}", data).name for name, data in files.items()}
    sha256 = source_sha256(tmp_path / "run" / folder, copies)
    reward = RewardCode(reference="/me/mine.py:reward", folder=folder, file="mine.py", sha256=sha256)
    trainer = TrainerOrder(
        reference="/me/mine.py",
        directory="/me",
        outcome="score",
        folder=folder,
        files=tuple(files),
        sha256=sha256,
        metrics={},
        out="out",
        resumes=True,
    )
    first_event, *later_events = ready_journals.one_replicate()
    (block,) = first_event.plan.blocks
    code = {"reward_code": (reward,), "trainer": trainer}
    runs = tuple(replace(spec, **{field: code[field]}) for spec in block.runs)
    plan = replace(first_event.plan, blocks=(replace(block, runs=runs),))
    experiment_dir = with_files(tmp_path / "run", [replace(first_event, plan=plan), *later_events])
    assert tidy(experiment_dir, "--check") == 0
    (experiment_dir / folder / damaged_file).write_bytes(b"bonus = 2")
    assert tidy(experiment_dir, "--check") == 5
    assert f"damaged: {folder}: copy of /me/mine.py" in capsys.readouterr().out


def test_a_check_ignores_journal_lines_appended_during_the_check(stopped, monkeypatch):
    path = stopped / JOURNAL_NAME
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))

    def fold_then(*events, **options):  # the coordinator writes just after the last line was read
        return fold(*events, **options), path.write_bytes(whole)

    monkeypatch.setattr(_check, "fold", lambda *events, **options: fold_then(*events, **options)[0])
    examination = examine(stopped)
    assert (examination.lines, examination.lines_behind, examination.exit_status) == (len(lines) - 2, 0, 0)


def test_a_check_does_not_hold_the_journal_in_memory(tmp_path):
    ready_journals.write(tmp_path / "long", synthetic.Synthetic(replicates=1, episodes=150, n_envs=8).events())
    tracemalloc.start()
    examination = examine(tmp_path / "long")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert examination.episodes == 300
    assert peak < (tmp_path / "long" / JOURNAL_NAME).stat().st_size


@pytest.mark.parametrize("open_by_writer", [True, False])
def test_a_check_ignores_the_incomplete_line_of_a_running_experiment(stopped, open_by_writer):
    path = stopped / JOURNAL_NAME
    with closing(Journal.take_up(stopped, list)[0]) if open_by_writer else nullcontext():
        data = path.read_bytes()
        path.write_bytes(data[:-5])
        assert (examine(stopped).lines_behind == 0) == open_by_writer
        path.write_bytes(data)


@pytest.mark.parametrize("file", ["experiment.toml", "runs/shaped-0/config.toml"])
def test_a_check_names_settings_that_contradict_their_hash(finished, file, capsys):
    settings = 'episodes = 12\n\n[record]\nsettings = "'
    write_file(finished, file, f'{settings}{settings_sha256({"episodes": 12})}"\n'.encode())
    assert tidy(finished, "--check") == 0
    write_file(finished, file, f'{settings}{settings_sha256({"episodes": 13})}"\n'.encode())
    assert tidy(finished, "--check") == 5
    assert f"damaged: {file}: the settings do not match the hash in [record]" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["flip", "cut", "missing"])
def test_a_check_reports_a_damaged_newest_checkpoint_of_an_unfinished_run(stopped, kind):
    spoil(stopped / NEWEST, kind)
    examination = examine(stopped)
    assert (list(examination.faults), examination.exit_status) == ([NEWEST], 5)


def test_a_check_accepts_missing_but_not_damaged_checkpoints(finished):
    """Older generations are removed as a run goes on, all of them by tidy."""
    for milestone, kind, faults in ((7, "missing", 0), (8, "flip", 1), (8, "missing", 0)):
        spoil(finished / f"checkpoints/{RUN}/{milestone}.pt", kind)
        assert len(examine(finished).faults) == faults


def spoil(path, kind):
    data = path.read_bytes()
    path.unlink()
    if kind != "missing":
        path.write_bytes(data[:-1] if kind == "cut" else data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize("file", ["../secret", "/etc/hostname", "policies/../../secret"])
def test_a_check_refuses_a_path_outside_the_experiment_directory(tmp_path, file):
    (tmp_path / "secret").write_bytes(POLICY)
    events = evaluations(ready_journals.one_replicate(), lambda record: replace(record, policy_file=file))
    examination = examine(ready_journals.write(tmp_path / "run", events))
    assert (examination.exit_status, examination.evaluations, examination.faults) == (5, 0, {})
    assert "policy_file" in examination.damage


def test_a_check_can_read_an_experiment_directory_in_use(stopped):
    spoil(stopped / NEWEST, "missing")
    with closing(Lock(stopped)):
        examination = examine(stopped)
        assert (examination.faults, examination.exit_status) == ({}, 0)
        assert f"in use by process {os.getpid()} on " in describe(examination)


def test_a_check_prints_json_for_a_path_that_is_not_utf_8(tmp_path, capsys):
    directory = with_files(tmp_path / os.fsdecode(b"\xff"), ready_journals.one_replicate())
    assert tidy(directory, "--check", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["experiment_dir"] == str(directory)
