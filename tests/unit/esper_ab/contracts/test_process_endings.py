"""Descriptions of how processes ended."""

import signal

from esper_ab.contracts.process_endings import how_ended


def test_the_end_of_a_process_is_described_by_signal_or_status():
    assert how_ended(-40) == "was killed by signal 40"
    assert how_ended(-signal.SIGKILL) == "was killed by SIGKILL"
    assert how_ended(3) == "ended with exit status 3"
