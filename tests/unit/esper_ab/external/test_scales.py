import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.external.scales import scales_of, told_by_task


def test_one_value_is_for_all_tasks_and_each_may_have_its_own():
    found = scales_of(("a", "b"), told_by_task("a=2,b=0.5"), better=told_by_task("b=lower"), unit="%")
    assert [(one.task, one.margin, one.outcome.better) for one in found] == [("a", 2.0, "higher"), ("b", 0.5, "lower")]
    assert found[0].outcome.difference("1.20") == "1.20 points"
    assert [one.margin for one in scales_of(("a", "b"), told_by_task("3"))] == [3.0, 3.0]


@pytest.mark.parametrize("how", [
    {"margin": "0"}, {"margin": "nan"}, {"margin": "inf"}, {"margin": "two"}, {"margin": {"a": 1.0}},
    {"margin": {"a": 1.0, "b": 1.0, "c": 1.0}}, {"margin": 1.0, "better": "up"}, {"margin": 1.0, "unit": "x" * 21},
    {"margin": 1.0, "label": ""},
])  # fmt: skip
def test_what_means_nothing_is_refused(how):
    with pytest.raises(UsageError):
        scales_of(("a", "b"), **how)


def test_half_a_list_is_refused():
    with pytest.raises(UsageError, match="TASK=VALUE"):
        told_by_task("a=2,3")
