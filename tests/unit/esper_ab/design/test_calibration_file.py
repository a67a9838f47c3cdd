"""calibration.json: written, read back, described, and checked against an experiment."""

from pathlib import Path

import msgspec
import pytest
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.calibration import calibration_of
from esper_ab.contracts.errors import UsageError
from esper_ab.design.calibration_file import Calibration, check_belongs, load_calibration
from esper_ab.design.calibration_text import calibration_text
from esper_ab.design.power_tables import Known, power_tables
from esper_ab.design.scheme import PowerQuestion
from esper_ab.journal.fold import fold
from esper_ab.settings.experiment import ResolvedExperiment

ONE_MODE = Synthetic(groups={"a": Shape(stream="a"), "b": Shape(stream="b")}, replicates=6)
CODE = {"sources": "here"}


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    measured = calibration_of(fold(ONE_MODE.events()), 10, deterministic=True, named=True)
    return msgspec.structs.replace(measured, code=CODE)


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
    different = calibration_text(msgspec.structs.replace(calibration, deterministic=False))
    assert "DIFFERENT" in different


def test_a_calibration_is_valid_for_other_seeds(calibration: Calibration) -> None:
    assert check_belongs(calibration, make_experiment(seeds=20, rng_seed=5, name="other"), CODE) == ()
    (remark,) = check_belongs(calibration, make_experiment(), {"sources": "elsewhere"})
    assert "The code has changed" in remark


def test_a_calibration_of_too_few_runs_is_refused() -> None:
    history = fold(Synthetic(groups=ONE_MODE.groups, replicates=1).events())
    with pytest.raises(UsageError, match="only 2 runs"):
        calibration_of(history, 10, deterministic=True, named=True)


def test_a_calibration_without_a_margin_suggests_a_margin() -> None:
    calibration = calibration_of(fold(ONE_MODE.events()), 10, deterministic=True, named=False)
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
    measured = noise.components.eval_episodes
    assert calibration.run_sd(measured) == pytest.approx(calibration.spread.sd)
    for episodes in (2 * measured, max(1, measured // 2)):
        assert calibration.run_sd(episodes) == pytest.approx(
            calibration.spread.sd * noise.variance_times(episodes) ** 0.5
        )
    assert msgspec.structs.replace(calibration, noise=None).run_sd(2 * measured) == calibration.spread.sd
