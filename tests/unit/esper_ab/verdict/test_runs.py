import hashlib

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.verdict.observation import Observation
from esper_ab.verdict.runs import Runs

ROWS = st.lists(
    st.builds(
        Observation,
        group=st.sampled_from(["a", "b"]),
        replicate=st.sampled_from(["0", "1", "s2"]),
        task=st.sampled_from(["", "t", "u"]),
        value=st.one_of(st.none(), st.floats(-1e9, 1e9)),
        cancelled=st.booleans(),
        run=st.sampled_from(["", "r"]),
        cluster=st.sampled_from(["", "m"]),
        order=st.one_of(st.none(), st.integers(-(10**30), 10**30)),
        place=st.one_of(st.none(), st.integers(0, 7)),
        row=st.integers(0, 9),
    ),
    max_size=9,
    unique_by=lambda row: (row.group, row.task, row.replicate),
)


@given(ROWS)
def test_rows_in_columns_are_the_same_rows(rows):
    runs = Runs.of(rows)
    assert len(runs) == len(rows)
    assert list(runs) == rows
    assert list(runs[::-1]) == rows[::-1]
    assert [runs[place] for place in range(len(rows))] == rows


@given(ROWS)
def test_the_digest_is_that_of_all_outcomes_in_alphabetical_order(rows):
    outcomes = sorted((row.group, row.replicate, row.task, row.cluster, row.value) for row in rows)
    assert Runs.of(rows).digest() == hashlib.sha256(msgspec.json.encode(outcomes)).digest()


@given(ROWS)
def test_runs_of_some_groups_tasks_and_replicates(rows):
    expected = [row.group == "a" and row.task in ("", "t") and row.replicate != "0" for row in rows]
    assert Runs.of(rows).among({"a"}, ("", "t"), ["1", "s2"]).tolist() == expected


def test_runs_with_nothing_but_outcomes_have_empty_columns():
    known = Runs.of([Observation(group="a", replicate="0", value=1.5, run="r", cluster="m", order=3, place=2, row=7)])
    (bare,) = Runs.with_outcomes(known.group, known.replicate, known.value)
    assert bare == Observation(group="a", replicate="0", value=1.5)


def test_the_digest_of_more_rows_than_are_written_at_once_is_that_of_all():
    rows = [Observation(group="a", replicate=str(seed), value=float(seed)) for seed in range(20_001)]
    outcomes = sorted((row.group, row.replicate, row.task, row.cluster, row.value) for row in rows)
    assert Runs.of(rows).digest() == hashlib.sha256(msgspec.json.encode(outcomes)).digest()


def test_a_single_run_is_found_or_not():
    runs = Runs.of(Observation(group=group, replicate="0", value=1.0) for group in "ab")
    assert runs.find("b", "", "0") == runs[1]
    assert runs.find("b", "", "1") is None
