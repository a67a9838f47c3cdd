"""The port that a command is given: free, and no other run's at the same time."""

import socket
from contextlib import ExitStack

import pytest

from workers.kinds.trainer import ports

COMMAND = "torchrun --master-port {port} t.py {seed} {out}"


def test_runs_at_the_same_time_have_different_ports_on_which_a_program_can_listen() -> None:
    with ExitStack() as runs:
        given = [runs.enter_context(ports.claimed(COMMAND))["port"] for _ in range(40)]
        for port in given:
            runs.enter_context(socket.create_server(("", port)))
    assert len(set(given)) == len(given)


def test_a_port_that_a_program_or_a_run_has_is_not_given_and_a_run_that_ended_gives_its_own_back(monkeypatch) -> None:
    with ports.claimed(COMMAND) as found:
        port = found["port"]
        monkeypatch.setattr(ports, "PORTS", (port,))
        with pytest.raises(ValueError, match=r"no port .* is free for \{port\}"), ports.claimed(COMMAND):
            pass
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ValueError, match="no port"), ports.claimed(COMMAND):
        pass
    with ports.claimed(COMMAND) as again:
        assert again["port"] == port


def test_a_command_without_a_port_claims_none() -> None:
    with ports.claimed("python t.py {seed} {out}") as found:
        assert not found
