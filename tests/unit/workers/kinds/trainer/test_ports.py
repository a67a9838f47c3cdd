"""The port of a command is free and no other run's at the same time."""

import socket
from contextlib import ExitStack

import pytest

from workers.kinds.trainer import ports

COMMAND = "torchrun --master-port {port} t.py {seed} {out}"


def test_concurrent_runs_have_different_free_ports() -> None:
    with ExitStack() as runs:
        claimed_ports = [runs.enter_context(ports.claimed(COMMAND))["port"] for _ in range(40)]
        for port in claimed_ports:
            runs.enter_context(socket.create_server(("", port)))
    assert len(set(claimed_ports)) == len(claimed_ports)


def test_a_port_in_use_is_not_claimed_by_another_run(monkeypatch) -> None:
    with ports.claimed(COMMAND) as placeholders:
        port = placeholders["port"]
        monkeypatch.setattr(ports, "PORTS", (port,))
        with pytest.raises(ValueError, match=r"no port .* is free for \{port\}"), ports.claimed(COMMAND):
            pass
    with socket.create_server(("127.0.0.1", port)), pytest.raises(ValueError, match="no port"), ports.claimed(COMMAND):
        pass
    with ports.claimed(COMMAND) as second_placeholders:
        assert second_placeholders["port"] == port


def test_a_command_without_a_port_placeholder_claims_no_port() -> None:
    with ports.claimed("python t.py {seed} {out}") as placeholders:
        assert not placeholders
