import csv
import io

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.evaluation_plan import make_evaluation_plan
from esper_ab.readers.order_file import read_order, save_order, write_order
from esper_ab.readers.scales import scales_of
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.judge import judge

ITEMS = tuple(map(str, range(1, 13)))


def plan_of(*, is_paired=True, items=ITEMS, seed=5, **rule):
    (scale,) = scales_of(("",), 0.1)
    return make_evaluation_plan(("new", "old"), items, scale, Rule(**rule), paired=is_paired, seed=seed)


def rows_of(plan):
    return list(csv.DictReader(io.StringIO(write_order(plan).decode())))


def filled(plan, count, succeeds=lambda group, block: group == "new"):
    """Rows whose first `count` trials have outcomes."""
    rows = rows_of(plan)
    for place, row in enumerate(rows[:count]):
        group = plan.evaluation.group_of(row["arm"])
        row["outcome"] = str(int(succeeds(group, place // 2)))
    return rows


def written(tmp_path, rows):
    file = tmp_path / "order.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ("trial", "arm", "item", "outcome"))
        writer.writeheader()
        writer.writerows(rows)
    return file


def observed(tmp_path, plan, rows):
    return read_order(plan, written(tmp_path, rows))


@pytest.mark.parametrize("is_paired", [True, False])
def test_an_order_file_does_not_reveal_the_groups(is_paired):
    plan = plan_of(is_paired=is_paired)
    rows = rows_of(plan)
    assert [row["trial"] for row in rows] == [str(trial) for trial in range(1, 25)]
    assert "".join(row["arm"] for row in rows) == plan.evaluation.order
    assert [row["item"] for row in rows[::2]] == list(ITEMS) == [row["item"] for row in rows[1::2]]
    assert {row["outcome"] for row in rows} == {""}
    assert b"new" not in write_order(plan)


def test_an_existing_order_is_not_replaced(tmp_path):
    save_order(plan_of(), tmp_path / "order.csv")
    with pytest.raises(UsageError, match="may have outcomes"):
        save_order(plan_of(), tmp_path / "order.csv")


@pytest.mark.parametrize("is_paired", [True, False])
def test_the_plan_file_reveals_the_group_of_each_arm(tmp_path, is_paired):
    plan = plan_of(is_paired=is_paired)
    observations = observed(tmp_path, plan, filled(plan, 24))
    assert {(row.group, row.value) for row in observations.rows} == {("new", 1.0), ("old", 0.0)}
    assert len(observations.rows) == 24
    assert observations.departures == ()


def test_future_trials_are_not_counted_as_lost(tmp_path):
    plan = plan_of()
    rows = filled(plan, 9)
    rows[3]["outcome"] = ""
    observations = observed(tmp_path, plan, rows)
    assert [row.order for row in observations.rows] == list(range(1, 10))
    assert [row.order for row in observations.rows if row.value is None] == [4]
    assert observations.departures == (
        "Lost: trial 4 has no outcome, but later trials have one; a lost outcome counts against the claim.",
    )


def test_a_removed_row_counts_as_a_lost_trial(tmp_path):
    plan = plan_of(is_paired=False)
    rows = filled(plan, 24)
    del rows[6:8]
    observations = observed(tmp_path, plan, rows)
    assert sum(row.value is None for row in observations.rows) == 2
    assert observations.departures[0].startswith("Lost: 2 trials (7, 8) have no outcome")


@pytest.mark.parametrize("is_paired", [True, False])
def test_outcomes_of_swapped_arms_count_for_the_arm_that_ran(tmp_path, is_paired):
    plan = plan_of(is_paired=is_paired)
    rows = filled(plan, 24)
    for field in ("arm", "outcome"):
        rows[4][field], rows[5][field] = rows[5][field], rows[4][field]
    observations = observed(tmp_path, plan, rows)
    assert {(row.group, row.value) for row in observations.rows} == {("new", 1.0), ("old", 0.0)}
    assert observations.departures == (
        "Order not followed: 2 trials (5, 6) ran the other arm; each outcome counts for the arm in its row.",
    )


def test_swapped_items_and_sorted_rows_are_reported_as_departures(tmp_path):
    plan = plan_of()
    rows = filled(plan, 24)
    for place in (0, 1):
        rows[place]["item"], rows[place + 2]["item"] = rows[place + 2]["item"], rows[place]["item"]
    observations = observed(tmp_path, plan, rows[::-1])
    assert [text.split(":")[0] for text in observations.departures] == [
        "The rows are not in the order of their trials",
        "Order not followed",
    ]
    assert "4 trials (1, 2, 3, 4) ran another item" in observations.departures[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": "0.5"}, r"row 2, column outcome: 0\.5 is neither 1 \(success\) nor 0 \(failure\)"),
        ({"outcome": "yes"}, "row 2, column outcome: expected a number"),
        ({"arm": "new"}, r"row 2, column arm: 'new' is not in the plan \(A, B\)"),
        ({"item": "99"}, r"row 2, column item: '99' is not in the plan \(1, …, 12\)"),
        ({"trial": "25"}, r"row 2, column trial: '25' is no trial of the plan \(1 to 24\)"),
        ({"trial": "2"}, "row 3, column trial: trial 2 is in row 2, too"),
    ],
)
def test_the_refusal_of_an_invalid_order_cell_names_row_and_column(tmp_path, change, message):
    plan = plan_of()
    rows = filled(plan, 24)
    rows[0] |= change
    with pytest.raises(UsageError, match=message):
        observed(tmp_path, plan, rows)


def test_a_second_trial_of_an_item_by_one_arm_is_refused(tmp_path):
    plan = plan_of()
    rows = filled(plan, 24)
    rows[0]["arm"] = rows[1]["arm"]
    with pytest.raises(UsageError, match=r"arm [AB] has item 1 in trials 1 and 2"):
        observed(tmp_path, plan, rows)


def test_an_order_without_outcomes_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no trial has an outcome yet"):
        observed(tmp_path, plan_of(), rows_of(plan_of()))


@pytest.mark.parametrize("is_paired", [True, False])
def test_trials_after_the_deciding_look_are_not_used(tmp_path, is_paired):
    plan = plan_of(is_paired=is_paired, items=tuple(map(str, range(1, 41))))
    answer = judge(plan, observed(tmp_path, plan, filled(plan, 40)))
    assert str(answer.comparisons[0].verdict) == "BETTER"
    assert answer.next_step == f"Decided after 20 of 40 {plan.design.unit}s for each arm: stop."
    assert answer.departures == ()
    later_answer = judge(plan, observed(tmp_path, plan, filled(plan, 50)))
    assert later_answer.comparisons[0].headline == answer.comparisons[0].headline
    assert later_answer.departures == (
        "Not used: 10 outcomes after trial 40, at which the comparison was decided, are left out.",
    )


@pytest.mark.parametrize("is_paired", [True, False])
def test_between_two_looks_the_answer_of_the_last_look_is_shown(tmp_path, is_paired):
    plan = plan_of(is_paired=is_paired, items=tuple(map(str, range(1, 41))))

    def chance(group, block):
        return block % 2 == 0 if block < 20 else group == "new"

    answer = judge(plan, observed(tmp_path, plan, filled(plan, 57, chance)))
    (comparison,) = answer.comparisons
    assert str(comparison.verdict) == "INCONCLUSIVE"
    assert (comparison.estimate, comparison.used) == (0.0, 20)
    assert "after trial 60 (30 " in answer.next_step
    assert "3 outcomes are missing" in answer.next_step


@pytest.mark.parametrize("is_paired", [True, False])
def test_a_claim_that_lost_outcomes_could_overturn_is_withdrawn(tmp_path, is_paired):
    plan = plan_of(is_paired=is_paired)
    whole = filled(plan, 24, lambda group, block: group == "new" or block < 4)
    assert str(judge(plan, observed(tmp_path, plan, whole)).comparisons[0].verdict) == "BETTER"
    for row in whole[12:20]:
        if plan.evaluation.group_of(row["arm"]) == "new":
            row["outcome"] = ""
    comparison = judge(plan, observed(tmp_path, plan, whole)).comparisons[0]
    assert str(comparison.verdict) == "INCONCLUSIVE"
    assert comparison.lost.a == 4


def test_the_headline_of_an_evaluation_is_limited_to_the_two_checkpoints(tmp_path):
    plan = plan_of(is_paired=False)
    comparison = judge(plan, observed(tmp_path, plan, filled(plan, 24))).comparisons[0]
    assert comparison.question.level == "checkpoints"
    assert comparison.headline.startswith("On these 6 trials, checkpoint new is better than checkpoint old by 1.00")
    assert comparison.headline.endswith("this says nothing about training again.")
    assert comparison.test == "pooled z test"
