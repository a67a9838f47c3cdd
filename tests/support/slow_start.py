"""A worker that writes down when its start begins and is about to end, into the file that SLOW_START names."""

from __future__ import annotations

import os
import signal

from support import fake_worker

VARIABLE = "SLOW_START"
BEGINS, ENDS = "+", "-"


def main(order):
    """Entry point: the first worker of w01 dies before it has said Hello."""
    _note(BEGINS)
    if order.identity == "w01/1":
        _note(ENDS)
        os.kill(os.getpid(), signal.SIGKILL)
    hello = fake_worker.hello

    def and_note(of):
        _note(ENDS)
        return hello(of)

    fake_worker.hello = and_note
    fake_worker.main(order)


def _note(what):
    file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, what.encode())
    os.close(file)
