"""Intact journals with invalid contents, read-only directories, closed streams: one line of error each."""

import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab
from support.commands.progress_lines import without_progress
from support.journals.ready_journals import planted_effect, write
from support.processes.children import environment

from esper_ab.journal.events import AnyEvent, Incident, RunEvaluated
from esper_ab.journal.lock import JOURNAL_NAME

READING_COMMANDS = (
    ("report",),
    ("status", "--json"),
    ("status", "-f"),
    ("tidy", "--check"),
    ("query", "SELECT 1"),
    ("export",),
    ("tidy",),
    ("resume",),
)
# Name -> (pattern, replacement): contents that no version writes.
WRONG = {
    "a digest that is no number": (rb'"digest":"0{64}"', b'"digest":"' + b"x" * 64 + b'"'),
    "an outcome that there is not": (rb'"outcome_over":"evaluation","test"', b'"outcome_over":"happiness","test"'),
    "a comparison with nobody": (rb'"comparisons":\[\{"a":"\w+"', b'"comparisons":[{"a":"nobody"'),
    "a run of nobody": (rb'"runs":\["[^"]*"', b'"runs":["nobody/0"'),
    "a test that there is not": (rb'"test":"t"', b'"test":"signs"'),
    "a margin that is none": (rb'"margin":2.0,"measures"', b'"margin":0.0,"measures"'),
    "an episode before the first": (rb'"episode":3,"envs"', b'"episode":-1,"envs"'),
    "a time that is none": (rb'"t":"2026-01-01T00:00:2[^"]*"', b'"t":"yesterday"'),
    "a time of nowhere": (rb'"t":"2026-01-01T00:00:2[^"]*"', b'"t":"2026-01-01T00:00:20.000"'),
    "a plan without blocks": (rb'"blocks":\[.*\],"differences"', b'"blocks":[],"differences"'),
    "a block without runs": (rb'"runs":\[\{"kind".*\]\}\],"differences"', b'"runs":[]}],"differences"'),
    "an entry about nobody": (rb'"run_name":"shaped/0"', b'"run_name":"nobody/0"'),
    "a pathology of no run": (rb'"run_name":"shaped/0"', b'"run_name":""'),
}


def events_of_all_kinds() -> list[AnyEvent]:
    *events, end = planted_effect()
    pathology = Incident(category="ppo_pathology", run_name="shaped/0", episode=3, detail="entropy collapse")
    return [*events, pathology, end]


def rewrite_journal(experiment_dir: Path, pattern: bytes, replacement: bytes) -> None:
    """Replace the pattern in every line, and correct the CRCs."""
    path = experiment_dir / JOURNAL_NAME
    prev = b"00000000"
    lines = []
    original = path.read_bytes()
    for line in original.splitlines():
        body = line[: line.rindex(b',"crc"')].replace(line[line.index(b'"prev":"') + 8 :][:8], prev, 1)
        body = re.sub(pattern, lambda _: replacement, body)
        prev = b"%08x" % zlib.crc32(body)
        lines.append(body + b',"crc":"' + prev + b'"}\n')
    path.write_bytes(b"".join(lines))
    assert path.read_bytes() != original, "the pattern is not in this journal"


def check_one_error(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    lines = without_progress(done.stderr)
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == len(lines) <= 1, done.stderr
    return "".join(errors)


@pytest.mark.parametrize(
    ("wrong", "command"),
    [
        *((wrong, ("status",)) for wrong in WRONG),
        *((next(iter(WRONG)), command) for command in READING_COMMANDS),
    ],
)
def test_a_journal_with_valid_checksums_but_invalid_contents_is_refused(tmp_path, wrong, command):
    experiment_dir = write(tmp_path / "run", events_of_all_kinds())
    rewrite_journal(experiment_dir, *WRONG[wrong])
    done = esper_ab(command[0], experiment_dir, *command[1:])
    assert done.returncode == 5, done.stdout + done.stderr
    output = check_one_error(done) + done.stdout
    assert "intact" in output
    assert str(experiment_dir) in output


def test_list_shows_valid_experiments_beside_invalid_experiments(tmp_path):
    for number, (pattern, replacement) in enumerate(WRONG.values()):
        rewrite_journal(write(tmp_path / f"wrong-{number}", events_of_all_kinds()), pattern, replacement)
    write(tmp_path / "right", planted_effect())
    done = esper_ab("list", tmp_path)
    assert done.returncode == 0
    assert check_one_error(done) == ""
    assert len(done.stdout.splitlines()) == 1 + len(WRONG) + 1
    assert "finished" in done.stdout


@pytest.mark.skipif(os.getuid() == 0 and not Path("/proc/self/ns/mnt").exists(), reason="needs a mount namespace")
@pytest.mark.parametrize("command", ["report", "tidy", "resume", "tidy --repair", "export"])
def test_a_read_only_directory_is_reported_in_one_line(tmp_path, command):
    events = planted_effect()
    if command == "resume":
        events = events[: next(i for i, event in enumerate(events) if isinstance(event, RunEvaluated))]
    experiment_dir = write(tmp_path / "run", events)
    name, *options = command.split()
    options += ["--allow-changed-code"] if name == "resume" else []
    mounted = f"mount --bind {experiment_dir} {experiment_dir} && mount -o remount,bind,ro {experiment_dir}"
    line = f"{sys.executable} -m esper_ab.commands.cli {name} {experiment_dir} {' '.join(options)}"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"{mounted} && exec {line}"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr}")
    assert done.returncode == 2, done.stderr
    assert "Read-only file system" in check_one_error(done)
    assert "0 lines" not in done.stderr


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_damage_no_file(tmp_path, closed):
    """Libraries write to descriptors 1 and 2, whichever files have taken these numbers."""
    experiment_dir = write(tmp_path / "run", planted_effect())
    journal = (experiment_dir / JOURNAL_NAME).read_bytes()
    line = f"exec {sys.executable} -m esper_ab.commands.cli report {experiment_dir} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert (experiment_dir / "report.html").exists()
    assert (experiment_dir / JOURNAL_NAME).read_bytes() == journal
    launch = f"exec {sys.executable} -m esper_ab.launch --groups wait,nobody --dry-run {closed}"
    done = subprocess.run(["sh", "-c", launch], capture_output=True, env=environment(), cwd=tmp_path, check=False)
    assert done.returncode == 2
