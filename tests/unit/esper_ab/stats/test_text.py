import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esper_ab.stats.text import digits_apart, p_beside, percent


@given(st.floats(1e-12, 0.5))
def test_an_uncertain_share_is_never_shown_as_100_percent(alpha):
    printed_percent = float(percent(1.0 - alpha).removesuffix(" %"))
    assert printed_percent < 100.0
    assert (100.0 - printed_percent) == pytest.approx(100.0 * alpha, rel=0.06, abs=0.051)


@pytest.mark.parametrize(("level", "text"), [(0.95, "95 %"), (0.99952, "99.952 %"), (1.0, "100 %"), (0.05, "5 %")])
def test_a_probability_is_printed_as_a_percentage(level, text):
    assert percent(level) == text


@given(st.floats(1e-8, 1.0), st.floats(1e-8, 0.5))
@example(1.0000000000000002e-08, 1e-08)
@example(0.5, 0.49999999999999994)
def test_a_printed_p_stays_on_its_side_of_the_bound(p, bound):
    text, bound_text = p_beside(p, bound)
    printed_value = float(text.split()[1])
    printed_bound = float(bound_text)
    assert (printed_value > printed_bound) == (p > bound)
    assert (printed_value < printed_bound) == (p < bound)


@pytest.mark.parametrize(
    ("p", "bound", "texts"),
    [
        (0.0503, 0.05, ("= 0.0503", "0.05")),
        (0.0497, 0.05, ("= 0.0497", "0.05")),
        (0.012, 0.05, ("= 0.012", "0.05")),
        (0.3, 0.05, ("= 0.30", "0.05")),
        (1e-6, 0.05, ("< 0.0001", "0.05")),
        (8e-5, 5e-5, ("= 8e-05", "5e-05")),
    ],
)
def test_a_printed_p_has_enough_digits_to_differ_from_its_bound(p, bound, texts):
    assert p_beside(p, bound) == texts


@given(st.floats(-1e-6, 1e-6), st.sampled_from((1e-7, 1e-8, 1e-10)))
def test_small_values_have_enough_digits_to_differ_from_the_margin(value, margin):
    least_digits = 12
    digits = digits_apart((value,), (-margin, 0.0, margin), least_digits)
    if all(abs(value - mark) > 1e-15 for mark in (-margin, 0.0, margin)):
        assert all((round(value, digits) - mark) * (value - mark) > 0.0 for mark in (-margin, 0.0, margin))
