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
    prev_crc = b"00000000"
    lines = []
    original_bytes = path.read_bytes()
    for line in original_bytes.splitlines():
        body = line[: line.rindex(b',"crc"')].replace(line[line.index(b'"prev":"') + 8 :][:8], prev_crc, 1)
        body = re.sub(pattern, lambda _: replacement, body)
        prev_crc = b"%08x" % zlib.crc32(body)
        lines.append(body + b',"crc":"' + prev_crc + b'"}\n')
    path.write_bytes(b"".join(lines))
    assert path.read_bytes() != original_bytes, "the pattern is not in this journal"


def check_one_error(result: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in result.stderr + result.stdout, result.stderr
    lines = without_progress(result.stderr)
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == len(lines) <= 1, result.stderr
    return "".join(errors)


@pytest.mark.parametrize(
    ("wrong_part", "command"),
    [
        *((wrong, ("status",)) for wrong in WRONG),
        *((next(iter(WRONG)), command) for command in READING_COMMANDS),
    ],
)
def test_a_journal_with_valid_checksums_but_invalid_contents_is_refused(tmp_path, wrong_part, command):
    experiment_dir = write(tmp_path / "run", events_of_all_kinds())
    rewrite_journal(experiment_dir, *WRONG[wrong_part])
    result = esper_ab(command[0], experiment_dir, *command[1:])
    assert result.returncode == 5, result.stdout + result.stderr
    output = check_one_error(result) + result.stdout
    assert "intact" in output
    assert str(experiment_dir) in output


def test_list_shows_valid_experiments_beside_invalid_experiments(tmp_path):
    for number, (pattern, replacement) in enumerate(WRONG.values()):
        rewrite_journal(write(tmp_path / f"wrong-{number}", events_of_all_kinds()), pattern, replacement)
    write(tmp_path / "right", planted_effect())
    result = esper_ab("list", tmp_path)
    assert result.returncode == 0
    assert check_one_error(result) == ""
    assert len(result.stdout.splitlines()) == 1 + len(WRONG) + 1
    assert "finished" in result.stdout


@pytest.mark.skipif(os.getuid() == 0 and not Path("/proc/self/ns/mnt").exists(), reason="needs a mount namespace")
@pytest.mark.parametrize("command", ["report", "tidy", "resume", "tidy --repair", "export"])
def test_a_read_only_directory_is_reported_in_one_line(tmp_path, command):
    events = planted_effect()
    if command == "resume":
        events = events[: next(i for i, event in enumerate(events) if isinstance(event, RunEvaluated))]
    experiment_dir = write(tmp_path / "run", events)
    name, *options = command.split()
    options += ["--allow-changed-code"] if name == "resume" else []
    mount_command = f"mount --bind {experiment_dir} {experiment_dir} && mount -o remount,bind,ro {experiment_dir}"
    line = f"{sys.executable} -m esper_ab.commands.cli {name} {experiment_dir} {' '.join(options)}"
    result = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"{mount_command} && exec {line}"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    if "unshare" in result.stderr or "mount:" in result.stderr:
        pytest.skip(f"no mount namespace here: {result.stderr}")
    assert result.returncode == 2, result.stderr
    assert "Read-only file system" in check_one_error(result)
    assert "0 lines" not in result.stderr


@pytest.mark.parametrize("redirection", [pytest.param("2>&-", marks=pytest.mark.slow), "<&- >&- 2>&-"])
def test_closed_standard_streams_damage_no_file(tmp_path, redirection):
    """Libraries write to descriptors 1 and 2, whichever files have taken these numbers."""
    experiment_dir = write(tmp_path / "run", planted_effect())
    journal = (experiment_dir / JOURNAL_NAME).read_bytes()
    line = f"exec {sys.executable} -m esper_ab.commands.cli report {experiment_dir} {redirection}"
    result = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=environment(), check=False)
    assert (result.returncode, "Traceback" in result.stderr) == (0, False), result.stderr
    assert (experiment_dir / "report.html").exists()
    assert (experiment_dir / JOURNAL_NAME).read_bytes() == journal
    launch = f"exec {sys.executable} -m esper_ab.launch --groups wait,nobody --dry-run {redirection}"
    result = subprocess.run(["sh", "-c", launch], capture_output=True, env=environment(), cwd=tmp_path, check=False)
    assert result.returncode == 2
