from dataclasses import replace

import pytest
from support.elsewhere import drawn, outcomes, rows, scales

from esper_ab.report.figures import style
from esper_ab.report.figures.external import external_figure, render_figure
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.profiles import profiles_of

FOUND = outcomes([*rows(*drawn(20, 5.0), task="far"), *rows(*drawn(20, 5.0), task="time")])
RESULT = explore(FOUND, (*scales(2.0, ("far",)), *scales(2.0, ("time",), better="lower")), Rule())


def test_better_is_to_the_right_whatever_the_direction():
    axes = external_figure(RESULT).axes[0]
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert dots[0] == pytest.approx(-dots[1])
    assert dots[0] > 0.0
    assert [label.get_text().split(":")[0] for label in axes.get_yticklabels()] == ["far", "time", "mean over tasks"]


@pytest.mark.parametrize(("form", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_every_format_is_drawn_the_same_twice(form, start):
    shown = replace(RESULT, profiles=profiles_of(FOUND, ("new", "old"), {"far": (0.0, 100.0), "time": (100.0, 0.0)}))
    once, again = render_figure(shown, form), render_figure(shown, form)
    assert once.startswith(start)
    assert once == again


@pytest.mark.parametrize("apart", [0.5, 5.0, 40.0, -400.0])
def test_every_estimate_is_within_the_axis_and_so_is_zero(apart):
    found = explore(outcomes(rows(*drawn(8, apart))), scales(2.0), Rule())
    axes = external_figure(found).axes[0]
    (dot,) = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    low, high = axes.get_xlim()
    assert low < min(dot, -1.0)
    assert max(dot, 1.0) < high


def test_an_interval_that_is_cut_off_ends_in_an_arrow():
    wide = replace(RESULT.comparisons[0], low=-1e4, high=1e4)
    found = replace(RESULT, comparisons=(replace(RESULT.comparisons[0], comparison=wide),), profiles=())
    axes = external_figure(found).axes[0]
    assert {style.ARROW_LEFT, style.ARROW_RIGHT} <= {line.get_marker() for line in axes.lines}
