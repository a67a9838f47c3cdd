"""After the death of a worker: restart it, give the replicate up, or end the experiment."""

from hypothesis import given
from hypothesis import strategies as st

from esper_ab.control.rules.deaths import Deaths


@given(milestones=st.lists(st.integers(0, 3), max_size=20).map(sorted), death_limit=st.integers(1, 4))
def test_a_run_is_given_up_after_the_maximum_number_of_deaths_without_progress(milestones, death_limit):
    deaths = Deaths(death_limit)
    for n, milestone in enumerate(milestones):
        assert deaths.count_in_run("a/0", milestone) == (milestones[: n + 1].count(milestone) >= death_limit)


def test_deaths_outside_a_run_are_counted_until_the_lane_makes_progress():
    deaths = Deaths(3)
    assert [
        deaths.count_outside_run("cpu:0"),
        deaths.count_outside_run("cpu:1"),
        deaths.count_outside_run("cpu:0"),
    ] == [False] * 3
    deaths.reset_lane("cpu:0")
    assert [deaths.count_outside_run("cpu:0") for _ in range(3)] == [False, False, True]


def test_three_losses_for_the_same_reason_end_the_experiment():
    deaths = Deaths(3)
    reasons = ("no sign of life for 61 s", "was killed", "no sign of life for 75 s", "no sign of life for 103 s")
    assert [deaths.count_given_up(reason) for reason in reasons] == [False, False, False, True]


def test_failures_of_one_run_that_differ_only_in_numbers_are_equal():
    deaths = Deaths(3)
    runs = ("a/0", "a/0", "b/0", "a/0", "a/0")
    accounts = ("w1/1: no", "w1/2: no", "w2/1: no", "w1/3: yes", "w1/4: no")
    assert list(map(deaths.record_account, runs, accounts)) == [False, True, False, False, False]
