"""All figures of a report: names, colours, overlaps and reproducibility, without a display or pyplot."""

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
def report_content():
    """Return the content of a report on an experiment with a reward audit."""
    first_event, *later_events = three_groups()
    reward_audit = make_reward_audit([60.0, 40.0, 55.0, 30.0], {"shaped": [4, 2, 3, 1], "simplified": [1, 2, 3, 4]})
    plan = msgspec.structs.replace(first_event.plan, reward_audit=reward_audit)
    return content(fold([msgspec.structs.replace(first_event, plan=plan), *later_events]))


@pytest.mark.parametrize("name", NAMES)
def test_no_parts_of_a_figure_overlap(report_content, name):
    """Panels with their labels, legends and titles lie inside the figure and do not overlap."""
    figure = figures.figure(name, report_content)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert not set(re.findall(r"#[0-9a-f]{6}", style.svg(figure, name, {}))), "each becomes a variable of the style"
    figure.draw_without_rendering()
    parts = [artist.get_tightbbox() for artist in (*figure.axes, *figure.legends, *figure.texts)]
    width, height = figure.bbox.size
    for part in parts:
        assert min(part.x0, part.y0, width - part.x1, height - part.y1) > -3.0, "pixels beyond the edge"
    for first_part, second_part in itertools.combinations(parts, 2):
        across, vertical_overlap = (
            min(first_part.max[i], second_part.max[i]) - max(first_part.min[i], second_part.min[i]) for i in (0, 1)
        )
        assert min(across, vertical_overlap) < 3.0, "pixels on one another"


def test_the_colours_of_figures_equal_those_of_the_page():
    css = resources.files("esper_ab.report").joinpath("report.css").read_text().partition("@media")[0]
    page_colours = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})", css))
    for colour, variable in style.VARIABLES.items():
        assert page_colours[variable] == colour


def test_a_figure_without_data_is_not_drawn():
    assert figures.figure("effects", content(fold(one_replicate()[:1]))) is None


def test_drawing_figures_does_not_import_pyplot():
    code = "import esper_ab.report.figures.catalogue, sys; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


OBSERVATIONS = outcomes([*rows(*drawn(20, 5.0), task="far"), *rows(*drawn(20, 5.0), task="time")])
RESULT = explore(OBSERVATIONS, (*scales(2.0, ("far",)), *scales(2.0, ("time",), better_direction="lower")), Rule())


def test_better_outcomes_are_drawn_to_the_right_in_either_direction():
    axes = external_figure(RESULT).axes[0]
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert dots[0] == pytest.approx(-dots[1])
    assert dots[0] > 0.0
    assert [label.get_text().split(":")[0] for label in axes.get_yticklabels()] == ["far", "time", "mean over tasks"]


@pytest.mark.parametrize(("form", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_figures_are_reproducible_in_every_file_format(tmp_path, form, start):
    result = replace(
        RESULT, profiles=profiles_of(OBSERVATIONS, ("new", "old"), {"far": (0.0, 100.0), "time": (100.0, 0.0)})
    )
    for name in ("first", "second"):
        write_figure(external_figure(result), tmp_path / f"{name}.{form}")
    first_bytes, second_bytes = ((tmp_path / f"{name}.{form}").read_bytes() for name in ("first", "second"))
    assert first_bytes.startswith(start)
    assert first_bytes == second_bytes


@pytest.mark.parametrize("difference", [0.5, 5.0, 40.0, -400.0])
def test_the_axis_of_effects_includes_every_estimate_and_zero(difference):
    result = explore(outcomes(rows(*drawn(8, difference))), scales(2.0), Rule())
    axes = external_figure(result).axes[0]
    (dot,) = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    low, high = axes.get_xlim()
    assert low < min(dot, -1.0)
    assert max(dot, 1.0) < high


def test_an_interval_cut_off_by_the_axis_ends_in_an_arrow():
    wide_comparison = replace(RESULT.comparisons[0], low=-1e4, high=1e4)
    result = replace(RESULT, comparisons=(wide_comparison,), profiles=())
    axes = external_figure(result).axes[0]
    assert {style.ARROW_LEFT, style.ARROW_RIGHT} <= {line.get_marker() for line in axes.lines}
