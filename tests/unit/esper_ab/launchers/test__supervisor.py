"""What a supervisor does with commands, in this process: Ray only carries the calls."""

from __future__ import annotations

import signal

import pytest

from esper_ab.launchers._supervisor import Supervisor

GREETED = ("sh", "-c", "read order; echo key; read go; echo $order $go $SOME; echo why >&2; exit 3")


def test_lines_go_in_and_out_and_the_end_says_all(tmp_path):
    supervisor = Supervisor(str(tmp_path))
    begun = supervisor.begin("w00/1", GREETED, b"order\n", {"SOME": "default"})
    assert begun > 0
    assert supervisor.line("w00/1", begun) == b"key\n"
    supervisor.tell("w00/1", b"go\n", begun)
    assert supervisor.wait("w00/1", begun) == (3, b"key\norder go default\n", b"why\n")
    assert supervisor.wait("w00/1", begun)[0] == 3, "asked again"


def test_what_ray_sets_for_an_actor_is_not_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    supervisor = Supervisor(str(tmp_path))
    supervisor.begin("w00/1", ("sh", "-c", "env; pwd"), b"", {})
    status, output, _ = supervisor.wait("w00/1", None)
    assert status == 0
    assert b"OMP_NUM_THREADS" not in output
    assert b"CUDA_VISIBLE_DEVICES" not in output
    assert output.endswith(f"{tmp_path}\n".encode())


def test_of_a_command_that_could_not_be_started_nothing_is_told(tmp_path):
    supervisor = Supervisor(str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError):
        supervisor.begin("w00/1", GREETED, b"order\n", {})
    supervisor.tell("w00/1", b"go\n", None)
    supervisor.signal("w00/1", signal.SIGKILL, None)


def test_an_errand_sees_the_gpus_that_its_node_offers(tmp_path, monkeypatch):
    """They are asked about by actors without GPUs, in which Ray leaves the environment of its node."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    supervisor = Supervisor(str(tmp_path))
    supervisor.begin("errand", ("sh", "-c", "echo $CUDA_VISIBLE_DEVICES ${OMP_NUM_THREADS-unset}"), b"", {})
    assert supervisor.wait("errand", None) == (0, b"2,3 unset\n", b"")
    assert supervisor.visible() == "2,3"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert supervisor.visible() is None


def test_a_signal_reaches_it_and_one_that_has_ended_ignores_it(tmp_path):
    supervisor = Supervisor(str(tmp_path))
    supervisor.begin("w00/1", ("sleep", "600"), b"", {})
    supervisor.signal("w00/1", signal.SIGKILL, None)
    assert supervisor.wait("w00/1", None)[0] == -signal.SIGKILL
    supervisor.signal("w00/1", signal.SIGUSR1, None)
    assert supervisor.complaint("w00/1", None) == b""
