"""calibration.json: read again as written, and refused where it does not belong."""

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
def found() -> Calibration:
    calibration = calibration_of(fold(ONE_MODE.events()), 10, deterministic=True, named=True)
    return msgspec.structs.replace(calibration, code=CODE)


def experiment(**changes: object) -> ResolvedExperiment:
    return msgspec.structs.replace(ONE_MODE.plan().experiment, **changes)


def test_what_is_written_is_read(found: Calibration, tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_bytes(msgspec.json.encode(found))
    assert load_calibration(tmp_path) == found
    assert load_calibration(tmp_path / "calibration.json") == found


def test_it_is_of_all_runs_and_the_text_says_it_all(found: Calibration) -> None:
    assert (found.spread.runs, found.planned, found.mode) == (12, 10, "shaped")
    assert found.spread.low < found.spread.sd < found.spread.high
    assert [table.rho for table in found.power] == [0.0, 0.3, 0.6]
    text = " ".join(calibration_text(found).split())
    assert found.sentence in text
    assert f"Mean held-out accuracy {found.spread.mean:.1f} %; task" in text
    assert "No margin" not in text
    assert "gave the same records" in text
    different = calibration_text(msgspec.structs.replace(found, deterministic=False))
    assert "DIFFERENT" in different


def test_it_belongs_to_an_experiment_with_its_condition(found: Calibration) -> None:
    assert check_belongs(found, experiment(seeds=20, rng_seed=5, name="other"), CODE) == ()
    (remark,) = check_belongs(found, experiment(), {"sources": "elsewhere"})
    assert "The code has changed" in remark


def test_too_few_runs_are_refused() -> None:
    history = fold(Synthetic(groups=ONE_MODE.groups, replicates=1).events())
    with pytest.raises(UsageError, match="only 2 runs"):
        calibration_of(history, 10, deterministic=True, named=True)


def test_where_no_margin_was_named_there_is_one_to_start_from() -> None:
    found = calibration_of(fold(ONE_MODE.events()), 10, deterministic=True, named=False)
    (row,) = power_tables(Known(source="", sd=found.spread.sd), (0.0,), (10,), PowerQuestion(margin=found.margin))[
        0
    ].rows
    assert row.power == pytest.approx(0.8, abs=0.02)
    hint = f"No margin was named. 10 seeds can find a difference of {found.outcome.difference(f'{found.margin:g}')}"
    assert hint in " ".join(calibration_text(found).split())


def test_the_spread_of_runs_shrinks_with_more_evaluation_episodes(found: Calibration) -> None:
    noise = found.noise
    assert noise is not None
    measured = noise.components.eval_episodes
    assert found.run_sd(measured) == pytest.approx(found.spread.sd)
    for episodes in (2 * measured, max(1, measured // 2)):
        assert found.run_sd(episodes) == pytest.approx(found.spread.sd * noise.variance_times(episodes) ** 0.5)
    assert msgspec.structs.replace(found, noise=None).run_sd(2 * measured) == found.spread.sd
