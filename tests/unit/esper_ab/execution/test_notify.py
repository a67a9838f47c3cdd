"""`--notify`: a real command is told of an end, a pause and a loss; whatever it does, the experiment goes on."""

from __future__ import annotations

import time

import pytest
from support import conducted, fake_plans

from esper_ab.contracts.errors import UsageError
from esper_ab.control.observers import Pause
from esper_ab.execution.notify import LOG, Notify, filled, parse_notify, told
from esper_ab.journal.events import ExperimentEnded, Ledger

LOSS = Ledger(category="worker_death", run_name="a/0", episode=1, detail="worker w00/1 on cpu:0 was killed by SIGKILL")
END = ExperimentEnded(status="failed", detail="worker w00/4 failed")


def script(folder, text):
    made = folder / "tell.sh"
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)
    return str(made)


@pytest.fixture
def experiment(tmp_path):
    folder = tmp_path / "lab"
    folder.mkdir()
    return folder


def test_what_is_told_and_what_is_not():
    assert told(END) == ("end", "failed: worker w00/4 failed")
    assert told(ExperimentEnded(status="finished", detail="")) == ("end", "finished")
    assert told(Pause("no room on the disk")) == ("pause", "no room on the disk")
    assert told(LOSS) == ("loss", LOSS.detail)
    assert told("a warning") is None
    assert told(Ledger(category="restart", run_name="", episode=None, detail="")) is None


def test_placeholders_are_filled_and_else_the_text_is_the_last_word():
    values = {"event": "end", "text": "lab: it's over; $(x)", "experiment": "/tmp/lab"}
    assert filled(("mail", "-s", "{event} of {experiment}", "{text}"), values) == [
        "mail", "-s", "end of /tmp/lab", "lab: it's over; $(x)",
    ]  # fmt: skip
    assert filled(("tell.sh",), values) == ["tell.sh", "lab: it's over; $(x)"]


@pytest.mark.parametrize("command", ["", "'open", "no-such-program-anywhere {text}"])
def test_a_command_that_cannot_be_run_is_refused_before_anything_starts(command):
    with pytest.raises(UsageError, match=r"^--notify"):
        parse_notify(command)


def test_a_real_experiment_tells_of_its_end(experiment, tmp_path):
    heard = tmp_path / "heard"
    notify = Notify(experiment, parse_notify(f"{script(tmp_path, f'echo $1 $2 >> {heard}')} {{event}} {{text}}"))
    conducted.run(experiment, fake_plans.plan(), notify)
    notify.settle()
    assert heard.read_text() == "end lab: finished\n"
    assert (experiment / LOG).read_bytes() == b""


def test_commands_are_run_one_after_the_other_in_order(experiment, tmp_path):
    heard = tmp_path / "heard"
    notify = Notify(experiment, (script(tmp_path, f'printf "%s\\n" "$1" >> {heard}'),))
    for event in (LOSS, Pause("waiting\nfor room"), END):
        notify.observe(event)
    notify.settle()
    assert heard.read_text().splitlines() == [
        f"lab: {LOSS.detail}", r"lab: waiting\nfor room", "lab: failed: worker w00/4 failed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"), [("exit 3", "it ended with exit status 3"), ("sleep 600 & wait", "it did not end within 1 s")]
)
def test_one_that_fails_or_hangs_holds_nobody_up_and_is_named(experiment, tmp_path, capsys, text, said):
    notify = Notify(experiment, (script(tmp_path, text),), limit_s=1.0)
    began = time.monotonic()
    notify.observe(END)
    assert time.monotonic() - began < 0.5
    notify.settle()
    assert time.monotonic() - began < 10.0
    assert said in capsys.readouterr().err
    assert said in (experiment / LOG).read_text()


def test_when_too_many_are_waiting_the_end_is_told_all_the_same(experiment, tmp_path):
    heard = tmp_path / "heard"
    gate = tmp_path / "gate"
    tell = script(tmp_path, f'while [ ! -e {gate} ]; do sleep 0.05; done; echo "$1" >> {heard}')
    notify = Notify(experiment, (tell,))
    for _ in range(40):
        notify.observe(LOSS)
    notify.observe(END)
    gate.touch()
    notify.settle()
    lines = heard.read_text().splitlines()
    assert lines[-1] == "lab: failed: worker w00/4 failed"
    assert len(lines) < 30
