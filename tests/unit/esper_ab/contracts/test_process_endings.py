"""How processes ended, in words."""

import signal

from esper_ab.contracts.process_endings import how_ended


def test_one_for_real_time_has_its_number():
    assert how_ended(-40) == "was killed by signal 40"
    assert how_ended(-signal.SIGKILL) == "was killed by SIGKILL"
    assert how_ended(3) == "ended with exit status 3"
