"""Figures of a report outside of its page: each by its name, in real colours, without a display or pyplot."""

import itertools
import re
import subprocess
import sys
from dataclasses import replace
from importlib import resources

import msgspec
import pytest
from support.journals.ready_journals import one_replicate, three_groups
from support.outcomes.csv_outcomes import drawn, outcomes, rows, scales
from support.rewards.audited_rewards import make_reward_audit

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.figures import catalogue as figures
from esper_ab.report.figures import style
from esper_ab.report.figures.external import external_figure, write_figure
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.exploration import explore
from esper_ab.verdict.profiles import profiles_of

NAMES = figures.names(content(fold(one_replicate()[:1])))


@pytest.fixture(scope="module")
def found():
    """Of an experiment that includes a reward audit of its rewards."""
    started, *rest = three_groups()
    reward_audit = make_reward_audit([60.0, 40.0, 55.0, 30.0], {"shaped": [4, 2, 3, 1], "simplified": [1, 2, 3, 4]})
    plan = msgspec.structs.replace(started.plan, reward_audit=reward_audit)
    return content(fold([msgspec.structs.replace(started, plan=plan), *rest]))


@pytest.mark.parametrize("name", NAMES)
def test_each_is_drawn_in_colours_that_the_page_knows_and_nothing_lies_on_anything_else(found, name):
    """The room of labels is reckoned beforehand: panels with their labels, legends and titles lie apart, within."""
    figure = figures.figure(name, found)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert not set(re.findall(r"#[0-9a-f]{6}", style.svg(figure, name, {}))), "each becomes a variable of the style"
    figure.draw_without_rendering()
    parts = [one.get_tightbbox() for one in (*figure.axes, *figure.legends, *figure.texts)]
    width, height = figure.bbox.size
    for part in parts:
        assert min(part.x0, part.y0, width - part.x1, height - part.y1) > -3.0, "pixels beyond the edge"
    for one, other in itertools.combinations(parts, 2):
        across, down = (min(one.max[i], other.max[i]) - max(one.min[i], other.min[i]) for i in (0, 1))
        assert min(across, down) < 3.0, "pixels on one another"


def test_the_colours_are_those_of_the_page_in_the_light():
    css = resources.files("esper_ab.report").joinpath("report.css").read_text().partition("@media")[0]
    said = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", css))
    for colour, variable in style.VARIABLES.items():
        assert said[variable] == colour


def test_nothing_to_draw_is_none():
    assert figures.figure("effects", content(fold(one_replicate()[:1]))) is None


def test_no_pyplot_is_loaded():
    code = "import esper_ab.report.figures.catalogue, sys; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


FOUND = outcomes([*rows(*drawn(20, 5.0), task="far"), *rows(*drawn(20, 5.0), task="time")])
RESULT = explore(FOUND, (*scales(2.0, ("far",)), *scales(2.0, ("time",), better="lower")), Rule())


def test_better_is_to_the_right_whatever_the_direction():
    axes = external_figure(RESULT).axes[0]
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert dots[0] == pytest.approx(-dots[1])
    assert dots[0] > 0.0
    assert [label.get_text().split(":")[0] for label in axes.get_yticklabels()] == ["far", "time", "mean over tasks"]


@pytest.mark.parametrize(("form", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_every_format_is_drawn_the_same_twice(tmp_path, form, start):
    shown = replace(RESULT, profiles=profiles_of(FOUND, ("new", "old"), {"far": (0.0, 100.0), "time": (100.0, 0.0)}))
    for name in ("once", "again"):
        write_figure(external_figure(shown), tmp_path / f"{name}.{form}")
    once, again = ((tmp_path / f"{name}.{form}").read_bytes() for name in ("once", "again"))
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
    found = replace(RESULT, comparisons=(wide,), profiles=())
    axes = external_figure(found).axes[0]
    assert {style.ARROW_LEFT, style.ARROW_RIGHT} <= {line.get_marker() for line in axes.lines}
