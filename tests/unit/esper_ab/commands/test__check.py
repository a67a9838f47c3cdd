"""A check finds what is not as it was written; a repair cuts there, and takes nothing away that was recorded."""

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
    kept = []
    checkpoints = []
    for event in events:
        if isinstance(event, RunEvaluated):
            put(experiment_dir, event.record.policy_file)
            kept.append(RunEvaluated(record=replace(event.record, policy_sha256=SHA256)))
        elif isinstance(event, EpisodeRecorded) and event.record.run.name == RUN:
            milestone = event.record.episode + 1
            checkpoints.append(f"checkpoints/{RUN}/{milestone}.pt")
            saved = Checkpoint(milestone=milestone, file=checkpoints[-1], sha256=SHA256, size_bytes=len(POLICY))
            kept.append(replace(event, checkpoint=saved))
        else:
            kept.append(event)
    for file in checkpoints[-2:]:
        put(experiment_dir, file)
    return ready_journals.write(experiment_dir, kept)


def put(experiment_dir, file, data=POLICY):
    path = experiment_dir / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def in_progress():
    """One replicate, stopped after three of eight episodes."""
    events = ready_journals.one_replicate()
    third = [n for n, event in enumerate(events) if isinstance(event, EpisodeRecorded) and event.record.episode == 2]
    return events[: third[-1] + 1]


@pytest.fixture
def finished(tmp_path):
    return with_files(tmp_path / "run", ready_journals.one_replicate())


@pytest.fixture
def stopped(tmp_path):
    return with_files(tmp_path / "run", in_progress())


def everything(experiment_dir):
    return {path: path.read_bytes() for path in experiment_dir.rglob("*") if path.is_file()}


def tidy(experiment_dir, *options):
    return invoke(group, ["tidy", str(experiment_dir), *options], "esper-ab")


def test_all_is_well(finished, capsys):
    before = everything(finished)
    assert tidy(finished, "--check") == 0
    assert capsys.readouterr().out.endswith("no damage found\n")
    assert repair(finished) == ""
    assert before.items() <= everything(finished).items()


def test_a_torn_tail_is_no_damage_and_a_repair_keeps_it(stopped):
    path = stopped / JOURNAL_NAME
    data = path.read_bytes()
    path.write_bytes(data[:-5])
    found = examine(stopped)
    assert (found.exit_status, found.damage, found.lines_behind) == (0, "", 1)
    assert "resume cuts off" in describe(found)
    repair(stopped)
    (kept,) = stopped.glob("*.torn-*")
    assert path.read_bytes() + kept.read_bytes() == data[:-5]


def damage(lines, how, at):
    """The lines with the one at `at` flipped, gone, exchanged with the next one, or doubled."""
    match how:
        case "flip":
            return [*lines[:at], lines[at][:20] + bytes([lines[at][20] ^ 1]) + lines[at][21:], *lines[at + 1 :]]
        case "delete":
            return [*lines[:at], *lines[at + 1 :]]
        case "swap":
            return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
        case "double":
            return [*lines[: at + 1], *lines[at:]]


@given(how=st.sampled_from(("flip", "delete", "swap", "double")), at=st.integers(1, 12))
def test_damage_in_the_middle_is_cut_off_and_kept(tmp_path_factory, how, at):
    experiment_dir = with_files(tmp_path_factory.mktemp("damaged") / "run", in_progress())
    path = experiment_dir / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    assert at + 1 < len(lines)
    first = at + (how == "double")
    damaged = b"".join(damage(lines, how, at))
    path.write_bytes(damaged)
    before = everything(experiment_dir)

    found = examine(experiment_dir)
    assert (found.exit_status, found.lines, found.repairable) == (5, first, True)
    assert f"line {first + 1}:" in found.damage
    assert found.lines_behind == damaged.count(b"\n") - first
    assert f"esper-ab tidy {experiment_dir} --repair" in describe(found)
    assert everything(experiment_dir) == before  # looking changes nothing

    said = repair(experiment_dir)
    assert examine(experiment_dir).damage == ""
    (kept,) = experiment_dir.glob("*.torn-*")
    assert said == f"cut {kept.stat().st_size} bytes off the journal after line {first}; they are in {kept.name}; "
    assert path.read_bytes() == b"".join(lines[:first])
    assert path.read_bytes() + kept.read_bytes() == damaged
    assert all(path.is_file() for path in before)
    journal, events = Journal.take_up(experiment_dir, list)
    journal.close()
    assert len(events) == first


def test_a_journal_without_an_intact_line_is_left_alone(stopped, capsys):
    path = stopped / JOURNAL_NAME
    damaged = b"x" + path.read_bytes()
    path.write_bytes(damaged)
    assert tidy(stopped, "--check") == 5
    assert "would not repair" in capsys.readouterr().out
    assert tidy(stopped, "--repair") == 5
    assert path.read_bytes() == damaged


def test_lines_of_another_version_are_not_cut_off(stopped):
    class Unknown(msgspec.Struct, frozen=True, tag_field="kind", tag="of_tomorrow"):
        """An event that only a later version knows."""

    journal, _ = Journal.take_up(stopped, list)
    journal.append(Unknown())
    journal.close()
    before = (stopped / JOURNAL_NAME).read_bytes()
    assert tidy(stopped, "--repair") == 5
    found = examine(stopped)
    assert (found.exit_status, found.repairable) == (5, False)
    assert "read it with the version that wrote it" in found.damage
    assert (stopped / JOURNAL_NAME).read_bytes() == before


@pytest.mark.parametrize("how", ["flip", "cut", "missing"])
def test_a_policy_that_is_not_as_recorded_is_named(finished, how, capsys):
    policy = load(finished).history.runs[RUN].evaluation.policy_file
    spoil(finished / policy, how)
    assert tidy(finished, "--check", "--json") == 5
    (found,) = json.loads(capsys.readouterr().out)
    ((file, what),) = found["faults"].items()
    assert (file, what.partition(": ")[0]) == (policy, f"policy of {RUN}")
    assert repair(finished) == ""


@pytest.mark.parametrize(("field", "folder"), [("reward_code", "rewards/x"), ("trainer", "trainer/x")])
@pytest.mark.parametrize("damaged", ["mine.py", "helper.py"])
def test_a_copy_of_a_users_code_that_is_not_as_planned_is_named(tmp_path, field, folder, damaged, capsys):
    """The file that was named, and one that it imports."""
    files = {"mine.py": b"import helper", "helper.py": b"bonus = 1"}
    copies = {put(tmp_path / "run", f"{folder}/{name}", data).name for name, data in files.items()}
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
    first, *rest = ready_journals.one_replicate()
    (block,) = first.plan.blocks
    code = {"reward_code": (reward,), "trainer": trainer}
    runs = tuple(replace(spec, **{field: code[field]}) for spec in block.runs)
    plan = replace(first.plan, blocks=(replace(block, runs=runs),))
    experiment_dir = with_files(tmp_path / "run", [replace(first, plan=plan), *rest])
    assert tidy(experiment_dir, "--check") == 0
    (experiment_dir / folder / damaged).write_bytes(b"bonus = 2")
    assert tidy(experiment_dir, "--check") == 5
    assert f"damaged: {folder}: copy of /me/mine.py" in capsys.readouterr().out


def test_lines_that_were_appended_while_it_was_read_are_no_unfinished_line(stopped, monkeypatch):
    path = stopped / JOURNAL_NAME
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))

    def fold_then(*events, **how):  # the coordinator writes just after the last line was read
        return fold(*events, **how), path.write_bytes(whole)

    monkeypatch.setattr(_check, "fold", lambda *events, **how: fold_then(*events, **how)[0])
    found = examine(stopped)
    assert (found.lines, found.lines_behind, found.exit_status) == (len(lines) - 2, 0, 0)


def test_a_journal_is_not_kept_in_memory_while_it_is_read(tmp_path):
    ready_journals.write(tmp_path / "long", synthetic.Synthetic(replicates=1, episodes=150, n_envs=8).events())
    tracemalloc.start()
    found = examine(tmp_path / "long")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.episodes == 300
    assert peak < (tmp_path / "long" / JOURNAL_NAME).stat().st_size


@pytest.mark.parametrize("held", [True, False])
def test_a_line_that_is_being_written_is_none_that_was_lost(stopped, held):
    path = stopped / JOURNAL_NAME
    with closing(Journal.take_up(stopped, list)[0]) if held else nullcontext():
        data = path.read_bytes()
        path.write_bytes(data[:-5])
        assert (examine(stopped).lines_behind == 0) == held
        path.write_bytes(data)


@pytest.mark.parametrize("file", ["experiment.toml", "runs/shaped-0/config.toml"])
def test_settings_that_do_not_vouch_for_themselves_are_named(finished, file, capsys):
    settings = 'episodes = 12\n\n[record]\nsettings = "'
    put(finished, file, f'{settings}{settings_sha256({"episodes": 12})}"\n'.encode())
    assert tidy(finished, "--check") == 0
    put(finished, file, f'{settings}{settings_sha256({"episodes": 13})}"\n'.encode())
    assert tidy(finished, "--check") == 5
    assert f"damaged: {file}: the settings do not match the hash in [record]" in capsys.readouterr().out


@pytest.mark.parametrize("how", ["flip", "cut", "missing"])
def test_the_newest_checkpoint_of_an_unfinished_run_has_to_be_intact(stopped, how):
    spoil(stopped / NEWEST, how)
    found = examine(stopped)
    assert (list(found.faults), found.exit_status) == ([NEWEST], 5)


def test_checkpoints_that_nobody_needs_may_be_gone_but_not_rotten(finished):
    """Older generations are removed as a run goes on, all of them by tidy."""
    for milestone, how, faults in ((7, "missing", 0), (8, "flip", 1), (8, "missing", 0)):
        spoil(finished / f"checkpoints/{RUN}/{milestone}.pt", how)
        assert len(examine(finished).faults) == faults


def spoil(path, how):
    data = path.read_bytes()
    path.unlink()
    if how != "missing":
        path.write_bytes(data[:-1] if how == "cut" else data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize("file", ["../secret", "/etc/hostname", "policies/../../secret"])
def test_a_journal_cannot_point_outside(tmp_path, file):
    (tmp_path / "secret").write_bytes(POLICY)
    events = evaluations(ready_journals.one_replicate(), lambda record: replace(record, policy_file=file))
    found = examine(ready_journals.write(tmp_path / "run", events))
    assert (found.exit_status, found.evaluations, found.faults) == (5, 0, {})
    assert "policy_file" in found.damage


def test_an_experiment_directory_in_use_is_looked_at(stopped):
    spoil(stopped / NEWEST, "missing")
    with closing(Lock(stopped)):
        found = examine(stopped)
        assert (found.faults, found.exit_status) == ({}, 0)
        assert f"in use by process {os.getpid()} on " in describe(found)


def test_a_path_that_is_no_utf_8_has_its_json(tmp_path, capsys):
    there = with_files(tmp_path / os.fsdecode(b"\xff"), ready_journals.one_replicate())
    assert tidy(there, "--check", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["experiment_dir"] == str(there)
