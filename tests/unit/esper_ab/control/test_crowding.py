import os

from hypothesis import given
from hypothesis import strategies as st

from esper_ab.control.crowding import crowding


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_crowding_is_the_number_of_processes_per_core(few_processes, more_processes):
    cores = len(os.sched_getaffinity(0))
    assert crowding(few_processes) >= 1.0
    assert crowding(few_processes + more_processes) >= (few_processes + more_processes) / cores
    assert crowding(cores * 1_000_000) == 1_000_000
