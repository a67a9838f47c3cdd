"""Time and memory limits for a function that may be endless or huge."""

import resource
import threading

import pytest

from esper_ab.readers.bounded import in_time, more_memory


def test_a_function_within_its_time_limit_returns_or_raises():
    assert in_time(lambda: 3, lambda: None, 60.0) == 3
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0, lambda: None, 60.0)


@pytest.mark.parametrize("obeys", [True, False])
def test_a_function_that_exceeds_its_time_limit_is_interrupted(obeys):
    interrupted_event = threading.Event()
    late_event = threading.Event()
    event = interrupted_event if obeys else late_event
    with pytest.raises(TimeoutError):
        in_time(event.wait, interrupted_event.set, 0.01)
    assert interrupted_event.is_set()
    late_event.set()


def test_the_memory_limit_is_restored_after_a_refusal():
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    with more_memory(64 << 20):
        assert len(bytearray(8 << 20)) == 8 << 20
        with pytest.raises(MemoryError):
            bytearray(1 << 30)
    assert resource.getrlimit(resource.RLIMIT_DATA) == limits
    assert len(bytearray(128 << 20)) == 128 << 20
