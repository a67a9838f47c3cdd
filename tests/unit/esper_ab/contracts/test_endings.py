"""The end of any process has words, whatever ended it."""

from __future__ import annotations

import signal

import pytest

from esper_ab.contracts.endings import how_ended, name_of_signal


@pytest.mark.parametrize("number", range(1, signal.NSIG))
def test_every_signal_has_a_name(number):
    name = name_of_signal(number)
    assert name == f"signal {number}" or signal.Signals[name] == number
    assert how_ended(-number) == f"was killed by {name}"


def test_one_for_real_time_has_its_number():
    assert how_ended(-40) == "was killed by signal 40"
    assert how_ended(-signal.SIGKILL) == "was killed by SIGKILL"
    assert how_ended(3) == "ended with exit status 3"
