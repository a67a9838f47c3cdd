"""Exit statuses: SIGTERM interrupts a command, and errors of streams and memory are reported."""

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


def test_a_command_keeps_the_signal_handler_of_the_calling_program(capsys):
    caught = []
    previous_handler = signal.signal(signal.SIGTERM, lambda *_: caught.append(True))

    @click.command()
    def goes_on():
        os.kill(os.getpid(), signal.SIGTERM)

    try:
        assert invoke(goes_on, [], "esper-ab") == 0
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
    assert caught == [True]
    assert capsys.readouterr().err == ""


def test_characters_that_a_stream_cannot_encode_are_escaped():
    process = python("-m", "esper_ab.commands.cli", "--help", PYTHONIOENCODING="latin-1")
    assert (process.returncode, process.stderr) == (0, "")
    assert r"\u2026" in process.stdout


BEFORE_THE_END = {
    "": ["written", "registered"],
    "load_declaration(Path('mine.py'))": ["written", "registered", "torn"],  # it runs a file of the user's
}


@pytest.mark.parametrize("statement", BEFORE_THE_END)
def test_interpreter_teardown_is_skipped_unless_user_code_ran(statement, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from esper_ab import create_experiment\n"
        "experiment = create_experiment('x').add_variant('a').add_variant('b', ppo__lr=2).build()\n"
    )
    code = (
        "import atexit, sys\nfrom pathlib import Path\nfrom esper_ab.api.files import load_declaration\n"
        "from esper_ab.commands._exit_status import leaving\nclass Torn:\n"
        "    def __del__(self): print('torn')\ntorn = Torn()\natexit.register(print, 'registered')\n"
        f"print('written')\n{statement}\nsys.exit(leaving(7))\n"
    )
    process = python("-c", code, folder=tmp_path)
    assert process.returncode == 7
    assert sorted(process.stdout.splitlines()) == sorted(BEFORE_THE_END[statement])


def test_a_memory_error_is_reported_in_one_line_with_a_remedy(capsys):
    @click.command()
    def hungry():
        raise MemoryError("array of 3 TiB")

    assert invoke(hungry, [], "esper-ab") == 2
    message = capsys.readouterr().err
    assert message.startswith("error: out of memory (array of 3 TiB); free some")
    assert message.count("\n") == 1


def test_a_failed_write_to_stdout_is_reported_on_stderr(capsys):
    """With --json the report goes to the stream that has just failed, too."""

    @click.command()
    @click.option("--json", is_flag=True)
    def failing_command(json):
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        suppress(OSError),
        Path("/dev/full").open("w") as full_device,
        redirect_stdout(full_device),
    ):  # its end cannot be written
        status = invoke(failing_command, ["--json"], "esper-ab")
    assert status == DiskFull.exit_code
    assert "error: " in capsys.readouterr().err


def test_the_error_about_a_removed_working_directory_names_the_next_command(tmp_path, monkeypatch, capsys):
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
    message = "error: the working directory was removed; change to one that exists\nto go on: esper-ab resume there\n"
    assert capsys.readouterr().err == message
