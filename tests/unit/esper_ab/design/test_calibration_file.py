"""calibration.json: written, read back, described, and checked against an experiment."""

from pathlib import Path
from statistics import mean, stdev

import msgspec
import pytest
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.calibration import calibration_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.outcome_window import WINDOWS
from esper_ab.design.calibration_file import Calibration, check_belongs, load_calibration
from esper_ab.design.calibration_text import calibration_text
from esper_ab.design.outcome_windows import WindowSpread, needs_of
from esper_ab.design.power_tables import Known, power_tables
from esper_ab.design.scheme import PowerQuestion
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcome_of
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.stats.curve_change import CurveChange

ONE_MODE = Synthetic(groups={"a": Shape(stream="a"), "b": Shape(stream="b")}, replicates=6)
CODE = {"sources": "here"}


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    measured_calibration = calibration_of(fold(ONE_MODE.events()), 10, deterministic=True, margin_named=True)
    return msgspec.structs.replace(measured_calibration, code=CODE)


def make_experiment(**changes: object) -> ResolvedExperiment:
    return msgspec.structs.replace(ONE_MODE.plan().experiment, **changes)


def test_a_written_calibration_is_read_back_unchanged(calibration: Calibration, tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_bytes(msgspec.json.encode(calibration))
    assert load_calibration(tmp_path) == calibration
    assert load_calibration(tmp_path / "calibration.json") == calibration


def test_the_text_of_a_calibration_has_every_part(calibration: Calibration) -> None:
    assert (calibration.spread.runs, calibration.planned, calibration.mode) == (12, 10, "shaped")
    assert calibration.spread.low < calibration.spread.sd < calibration.spread.high
    assert [table.rho for table in calibration.power] == [0.0, 0.3, 0.6]
    text = " ".join(calibration_text(calibration).split())
    assert calibration.sentence in text
    assert f"Mean held-out accuracy {calibration.spread.mean:.1f} %; task" in text
    assert "No margin" not in text
    assert "gave the same records" in text
    varying_text = calibration_text(msgspec.structs.replace(calibration, deterministic=False))
    assert "DIFFERENT" in varying_text


def test_a_calibration_is_valid_for_other_seeds(calibration: Calibration) -> None:
    assert check_belongs(calibration, make_experiment(seeds=20, rng_seed=5, name="other"), CODE) == ()
    (remark,) = check_belongs(calibration, make_experiment(), {"sources": "elsewhere"})
    assert "The code has changed" in remark


def test_a_calibration_of_too_few_runs_is_refused() -> None:
    history = fold(Synthetic(groups=ONE_MODE.groups, replicates=1).events())
    with pytest.raises(UsageError, match="only 2 runs"):
        calibration_of(history, 10, deterministic=True, margin_named=True)


def test_a_calibration_without_a_margin_suggests_a_margin() -> None:
    calibration = calibration_of(fold(ONE_MODE.events()), 10, deterministic=True, margin_named=False)
    (row,) = power_tables(
        Known(source="", sd=calibration.spread.sd), (0.0,), (10,), PowerQuestion(margin=calibration.margin)
    )[0].rows
    assert row.power == pytest.approx(0.8, abs=0.02)
    difference = calibration.outcome.difference(f"{calibration.margin:g}")
    text = " ".join(calibration_text(calibration).split())
    assert f"No margin was named. 10 seeds can find a difference of {difference}" in text


def test_the_spread_of_runs_shrinks_with_more_evaluation_episodes(calibration: Calibration) -> None:
    noise = calibration.noise
    assert noise is not None
    measured_episodes = noise.components.eval_episodes
    assert calibration.run_sd("evaluation", measured_episodes) == pytest.approx(calibration.spread.sd)
    for episodes in (2 * measured_episodes, max(1, measured_episodes // 2)):
        assert calibration.run_sd("evaluation", episodes) == pytest.approx(
            calibration.spread.sd * noise.variance_times(episodes) ** 0.5
        )
    assert (
        msgspec.structs.replace(calibration, noise=None).run_sd("evaluation", 2 * measured_episodes)
        == calibration.spread.sd
    )


def test_a_calibration_has_the_spread_of_its_runs_for_every_window(calibration: Calibration) -> None:
    runs = fold(ONE_MODE.events()).runs.values()
    assert [window.outcome_over for window in calibration.windows] == ["evaluation", *WINDOWS]
    for window in calibration.windows:
        outcomes = [outcome_of(run, window.outcome_over) for run in runs]
        assert (window.mean, window.sd) == pytest.approx((mean(outcomes), stdev(outcomes)))
        assert calibration.run_sd(window.outcome_over, 8) == pytest.approx(window.sd)


def test_a_calibration_of_runs_without_a_curve_has_no_windows() -> None:
    single = Synthetic(groups=ONE_MODE.groups, replicates=6, episodes=1)
    calibration = calibration_of(fold(single.events()), 10, deterministic=True, margin_named=True)
    assert calibration.windows == ()
    assert "outcome-over" not in calibration_text(calibration)


def test_a_calibration_is_valid_for_every_window_of_its_runs(calibration: Calibration) -> None:
    other = make_experiment(outcome_over="last-third")
    assert check_belongs(calibration, other, CODE) == ()
    without = msgspec.structs.replace(calibration, windows=())
    with pytest.raises(UsageError, match='outcome_over was "evaluation" and is now "last-third"'):
        check_belongs(without, other, CODE)


def test_the_text_of_a_calibration_shows_the_seeds_that_every_window_needs(calibration: Calibration) -> None:
    text = calibration_text(calibration)
    table = text[text.index("Seeds needed for a difference of 2 points") :].splitlines()
    assert [line.split()[0] for line in table[2:6]] == ["evaluation", *WINDOWS]
    assert all(len(line) <= 100 for line in table)


def test_the_text_of_a_calibration_ends_with_what_its_curves_say_about_the_last_third(calibration: Calibration) -> None:
    text = " ".join(calibration_text(calibration).split())
    assert "Not recommended: --outcome-over last-third, because the curves of shaped" in text
    flat = CurveChange(runs=12, mean=0.0, low=-0.1, high=0.1)
    saving = WindowSpread(outcome_over="last-third", mean=70.0, sd=calibration.spread.sd / 2.0)
    flat_calibration = msgspec.structs.replace(calibration, curve_change=flat, windows=(calibration.windows[0], saving))
    assert "Recommended: --outcome-over last-third, which needs" in " ".join(calibration_text(flat_calibration).split())
    unknown = msgspec.structs.replace(calibration, curve_change=None)
    assert "ecommended" not in calibration_text(unknown)


@pytest.mark.parametrize("sd", [0.5, 1.0])
def test_the_seeds_of_a_window_are_those_that_its_own_spread_needs(calibration: Calibration, sd: float) -> None:
    (needs,) = needs_of([WindowSpread(outcome_over="last-third", mean=0.0, sd=sd)], calibration.power)
    tables = power_tables(Known(source="", sd=sd), (0.0, 0.3, 0.6), (10,), calibration.power[0].question)
    assert needs.seeds == tuple(table.needed.replicates for table in tables)


def test_a_window_whose_runs_do_not_differ_is_not_planned_with(calibration: Calibration) -> None:
    assert needs_of([WindowSpread(outcome_over="last-third", mean=500.0, sd=0.0)], calibration.power) == ()
