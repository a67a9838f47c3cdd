"""A full disk: a tmpfs of a few hundred kilobytes in a mount namespace of a child process.

Each scenario runs in such a child; `folder` is the root of the small disk.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

if __name__ == "__main__":  # the child is not started by pytest, which puts this on the path
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from msgspec.structs import replace
from support.commands.progress_lines import without_progress
from support.outcomes.csv_outcomes import scales
from support.plans import fake_plans
from support.processes.hidden_folder import namespaces

from esper_ab.analysis.audit_conduct import conduct_findings
from esper_ab.analysis.result_hash import result_hash
from esper_ab.campaign.campaign import Campaign, CampaignPlan
from esper_ab.campaign.experiment_directory import make_experiment_directory
from esper_ab.campaign.running import RunOptions, run
from esper_ab.commands._check import examine
from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.contracts.errors import DiskFull, Interrupted
from esper_ab.contracts.settings import ControllerSettings, GroupSettings
from esper_ab.control import experiment_run
from esper_ab.control.rules.limits import Limits
from esper_ab.journal.events import MilestoneReleased
from esper_ab.journal.fold import fold
from esper_ab.journal.load import load
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read
from esper_ab.launchers.inline import InlineLauncher
from esper_ab.live.on_stderr import Warnings
from esper_ab.plan.blocks import make_plan
from esper_ab.readers.external_plan import make_external_plan, save_plan
from esper_ab.readers.status_text import status_text
from esper_ab.settings.experiment import Group, ResolvedExperiment
from esper_ab.verdict.analysis_plan import Rule

LAUNCHER = InlineLauncher("support.workers.fake_worker:main_in_thread")
IMPATIENT = Limits(disk_full_s=0.1)
MOUNT = 'mount -t tmpfs -o size=512k tmpfs "$0" && exec "$@"'


def fill(folder):
    """Fill the disk; a file can still grow to the end of its last page."""

    def write_forever(file):
        while True:
            file.write(b"\0" * 4096)

    with (folder / "ballast").open("ab", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        write_forever(file)


def make_room(folder):
    (folder / "ballast").unlink()


class Neighbour:
    """Observer that fills the disk after milestone 1 and calls `on_wait` when the coordinator reports that it waits."""

    def __init__(self, folder, on_wait=lambda: None):
        self.notices = []
        self._folder = folder
        self._on_wait = on_wait
        self.filled = False

    def observe(self, event):
        if isinstance(event, MilestoneReleased) and event.milestone == 1 and not self.filled:
            self.filled = True
            fill(self._folder)
        if isinstance(event, str):
            self.notices.append(event)
            if "waiting" in event:
                self._on_wait()


def _plan():
    """Return a plan whose workers write no checkpoints and whose journal outgrows its last page on the full disk."""
    random_settings = GroupSettings(controller=ControllerSettings(name="random"))
    experiment = ResolvedExperiment(
        name="fake",
        groups=tuple(Group(name=name, settings=random_settings) for name in "ab"),
        devices=("cpu:0", "cpu:1"),
        slots=("early",),
        n_envs=1,
        episodes=40,
        steps=2,
        seeds=1,
        eval_episodes=1,
        margin=2.0,
    )
    return make_plan(experiment, replace(fake_plans.machine(2), controllers=("ppo", "random")))[0]


PLAN = _plan()


def external_plan():
    return make_external_plan(("a", "b"), tuple("012345"), scales(tasks=("digits",)), Rule())


def make_experiment_dir(folder, name="run"):
    experiment_dir = folder / name
    experiment_dir.mkdir()
    return experiment_dir


def hash_of(experiment_dir):
    return result_hash(load(experiment_dir).history)


def undisturbed_hash(folder):
    experiment_dir = make_experiment_dir(folder.parent, "undisturbed")  # on another disk
    experiment_run.run(PLAN, experiment_dir, LAUNCHER, ())
    return hash_of(experiment_dir)


# --- in the child ---


def run_waits_for_room_and_continues(folder):
    neighbour = Neighbour(folder, lambda: make_room(folder))
    experiment_dir = make_experiment_dir(folder)
    experiment_run.run(PLAN, experiment_dir, LAUNCHER, (Warnings(incidents=True), neighbour))
    assert [notice.partition(" ")[0] for notice in neighbour.notices] == ["no", "the"]
    assert hash_of(experiment_dir) == undisturbed_hash(folder)
    history = load(experiment_dir).history
    (entry,) = [entry for entry in history.incidents if entry.category == "disk_full"]  # and no other incident
    assert re.fullmatch(r"paused for \d+\.\d s: no space on the disk for the journal", entry.detail)
    assert history.incidents == [entry]
    assert [file for file in examine(experiment_dir).faults if "policies" not in file] == []
    assert f"  note: {entry.detail}\n" in status_text(experiment_dir)
    (note,) = [note for note in conduct_findings(history) if note.kind == "disk"]
    assert (note.weight, entry.detail in note.sentence) == ("notes", True)
    sys.stdout.writelines(f"warning: {notice}\n" for notice in neighbour.notices)


def run_gives_up_waiting_and_can_be_resumed(folder):
    experiment_dir = make_experiment_dir(folder)
    neighbour = Neighbour(folder)
    with pytest.raises(DiskFull) as caught:
        experiment_run.run(PLAN, experiment_dir, LAUNCHER, (neighbour,), IMPATIENT)
    assert str(caught.value).endswith(f"`esper-ab resume {experiment_dir}`")
    assert caught.value.exit_code == 75
    assert len(neighbour.notices) == 1
    events_before = list(read(experiment_dir / JOURNAL_NAME))
    make_room(folder)
    experiment_run.resume(experiment_dir, LAUNCHER, ())
    events_after = list(read(experiment_dir / JOURNAL_NAME))
    assert events_after[: len(events_before)] == events_before
    assert fold(events_after).ended.status == "finished"
    assert hash_of(experiment_dir) == undisturbed_hash(folder)


def ctrl_c_ends_the_wait_for_room(folder):
    """The limit is ten minutes, the timeout of this test one."""
    experiment_dir = make_experiment_dir(folder)
    neighbour = Neighbour(folder, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Interrupted, match=r"stopped by SIGINT while there was no space"):
        experiment_run.run(PLAN, experiment_dir, LAUNCHER, (neighbour,))
    assert load(experiment_dir).torn_bytes == 0


def report_is_written_whole_or_not_at_all(folder):
    experiment_dir = make_experiment_dir(folder)
    experiment_run.run(PLAN, experiment_dir, LAUNCHER, ())
    (experiment_dir / "summary.txt").write_text("an older one")
    journal = (experiment_dir / JOURNAL_NAME).read_bytes()
    fill(folder)
    assert invoke(group, ["report", str(experiment_dir)], "esper-ab") == 75
    assert (experiment_dir / "summary.txt").read_text() == "an older one"
    files = {path.name for path in experiment_dir.iterdir() if path.is_file()}
    assert files == {".lock", JOURNAL_NAME, "summary.txt"}
    assert (experiment_dir / JOURNAL_NAME).read_bytes() == journal


def partial_files_are_removed_when_the_disk_is_full(folder):
    """An experiment directory, one with several parts, a settings file, a plan file."""
    user_file = folder / "mine.toml"
    user_file.write_text("# my own\n")
    campaign_plan = CampaignPlan(
        campaign=Campaign(parts=(), output_dir=folder),
        directory=folder / "new",
        generated="",
        parts=(),
        launcher=LAUNCHER,
        over_all=external_plan(),
    )
    fill(folder)
    (folder / "new").mkdir()
    with pytest.raises(DiskFull, match=r"^no space left on the disk for .*experiment\.toml"):
        make_experiment_directory(folder / "new", PLAN, fake_plans.machine(2), "")
    with pytest.raises(OSError, match="No space left"):
        run(campaign_plan, RunOptions(watched=False))
    with pytest.raises(OSError, match="No space left"):
        save_plan(external_plan(), folder / "plan.json")
    assert invoke(group, ["init", str(folder / "new.toml")], "esper-ab") == 75
    assert invoke(group, ["init", str(user_file), "--force"], "esper-ab") == 75
    assert user_file.read_text() == "# my own\n"
    assert sorted(path.name for path in folder.iterdir()) == ["ballast", "mine.toml"]
    make_room(folder)
    (folder / "new").mkdir()
    make_experiment_directory(folder / "new", PLAN, fake_plans.machine(2), "")


# --- here ---


@pytest.mark.parametrize(
    "scenario",
    [
        run_waits_for_room_and_continues,
        run_gives_up_waiting_and_can_be_resumed,
        ctrl_c_ends_the_wait_for_room,
        report_is_written_whole_or_not_at_all,
        partial_files_are_removed_when_the_disk_is_full,
    ],
)
def test_a_full_disk_leaves_no_partial_file(scenario, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    line = ["unshare", namespaces(disk), "sh", "-c", MOUNT, disk, sys.executable, __file__, scenario.__name__, disk]
    result = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    if scenario is run_waits_for_room_and_continues:
        assert (
            without_progress(result.stderr) == result.stdout.splitlines()
        )  # the child printed the same warnings and nothing else
    if scenario is report_is_written_whole_or_not_at_all:
        (line,) = without_progress(result.stderr)
        assert line.startswith(f"error: no space left on the disk for {disk / 'run' / 'summary.txt'}")


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
