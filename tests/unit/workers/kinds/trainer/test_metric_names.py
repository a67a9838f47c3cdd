import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.measures import RESERVED, Measure, is_printable
from workers.kinds.trainer.metric_names import measure_names

NAMES = st.text(min_size=1, max_size=70).filter(is_printable)


@pytest.mark.parametrize("metric", ["", "a\nb", "cost_$", "\x1b[2J"])
def test_a_metric_with_an_unprintable_name_is_refused(metric: str) -> None:
    with pytest.raises(ValueError, match="needs a name without control characters") as refused:
        measure_names(["loss", metric])
    assert repr(metric) in str(refused.value)


@given(metrics=st.lists(NAMES, unique=True, max_size=9))
def test_every_metric_has_a_distinct_measure_name(metrics: list[str]) -> None:
    names = measure_names(metrics)
    assert list(names) == metrics
    assert len(set(names.values()) - RESERVED) == len(metrics)
    for name in names.values():
        Measure(name=name, label="")  # its type is checked when it is decoded
        assert name.isidentifier()
        assert name == name.lower()
        assert len(name) <= 64
