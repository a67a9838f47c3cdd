"""SIGTERM is an interruption from the first line of a command on."""

import errno
import os
import signal
from contextlib import redirect_stdout, suppress
from pathlib import Path

import click
import pytest
from support.processes.children import python

from esper_ab.commands._exit_status import invoke
from esper_ab.contracts.errors import DiskFull


@click.command()
def killed():
    os.kill(os.getpid(), signal.SIGTERM)
    signal.sigwait({signal.SIGTERM})  # where it was not taken for an interruption


def test_sigterm_ends_a_command_as_ctrl_c_does(capsys):
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert invoke(killed, [], "esper-ab") == 130
    assert capsys.readouterr().err.strip() == "error: interrupted"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_the_program_that_calls_us_stays(capsys):
    caught = []
    before = signal.signal(signal.SIGTERM, lambda *_: caught.append(True))

    @click.command()
    def goes_on():
        os.kill(os.getpid(), signal.SIGTERM)

    try:
        assert invoke(goes_on, [], "esper-ab") == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught == [True]
    assert capsys.readouterr().err == ""


def test_what_a_stream_cannot_encode_is_escaped():
    done = python("-m", "esper_ab.commands.cli", "--help", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u2026" in done.stdout


BEFORE_THE_END = {
    "": ["written", "registered"],
    "load_declaration(Path('mine.py'))": ["written", "registered", "torn"],  # it runs a file of the user's
}


@pytest.mark.parametrize("before", BEFORE_THE_END)
def test_a_command_is_taken_apart_only_where_something_may_be_left_to_do(before, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from esper_ab import create_experiment\n"
        "experiment = create_experiment('x').add_variant('a').add_variant('b', ppo__lr=2).build()\n"
    )
    code = (
        "import atexit, sys\nfrom pathlib import Path\nfrom esper_ab.api.files import load_declaration\n"
        "from esper_ab.commands._exit_status import leaving\nclass Torn:\n"
        "    def __del__(self): print('torn')\ntorn = Torn()\natexit.register(print, 'registered')\n"
        f"print('written')\n{before}\nsys.exit(leaving(7))\n"
    )
    done = python("-c", code, folder=tmp_path)
    assert done.returncode == 7
    assert sorted(done.stdout.splitlines()) == sorted(BEFORE_THE_END[before])


def test_a_lack_of_memory_is_a_line_with_what_would_help(capsys):
    @click.command()
    def hungry():
        raise MemoryError("array of 3 TiB")

    assert invoke(hungry, [], "esper-ab") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: out of memory (array of 3 TiB); free some")
    assert said.count("\n") == 1


def test_an_error_of_the_output_is_reported_where_that_is_possible(capsys):
    """With --json the report goes to the stream that has just failed, too."""

    @click.command()
    @click.option("--json", is_flag=True)
    def failing(json):
        raise OSError(errno.ENOSPC, "No space left on device")

    with suppress(OSError), Path("/dev/full").open("w") as full, redirect_stdout(full):  # its end cannot be written
        status = invoke(failing, ["--json"], "esper-ab")
    assert status == DiskFull.exit_code
    assert "error: " in capsys.readouterr().err


def test_a_working_directory_that_is_removed_is_named_with_what_there_is_to_do(tmp_path, monkeypatch, capsys):
    @click.command()
    def looks():
        try:
            Path.cwd()
        except FileNotFoundError as error:
            error.add_note("to go on: esper-ab resume there")
            raise

    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert invoke(looks, [], "esper-ab") == 2
    said = "error: the working directory was removed; change to one that exists\nto go on: esper-ab resume there\n"
    assert capsys.readouterr().err == said
