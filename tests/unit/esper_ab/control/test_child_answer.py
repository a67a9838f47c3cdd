"""The answer of a child process, even if user code in it leaves processes running."""

import msgspec
import pytest
from support.processes import leftover_processes

from esper_ab.control import child_answer


@pytest.mark.parametrize("status", [0, 3])
def test_reading_an_answer_does_not_wait_for_processes_left_by_the_child(tmp_path, monkeypatch, status):
    with leftover_processes.leftover_helpers(tmp_path):
        text = f"sleep 60 & echo $! > {tmp_path}/pids; echo [1]; echo why >&2; exit {status}"
        monkeypatch.setattr(child_answer, "child_command", lambda *_: ["sh", "-c", text])
        if status:
            with pytest.raises(child_answer.EsperError, match=r"^mine ended with exit status 3; its last line: why$"):
                child_answer.answer_of("mine", (), msgspec.json.Decoder())
        else:
            assert child_answer.answer_of("mine", (), msgspec.json.Decoder()) == [1]
