"""`esper-ab power`: where the spread comes from, what is refused, and that the words are the numbers'."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from support.journals import Shape, Synthetic, write

from esper_ab.analysis.analyse import analyse
from esper_ab.analysis.calibration import known_from_pairs
from esper_ab.commands.power import command
from esper_ab.contracts.errors import UsageError
from esper_ab.design.pairs_needed import power
from esper_ab.design.power import PowerQuestion
from esper_ab.design.power_text import Known, answer, power_text
from esper_ab.journal.fold import fold


def table(known: Known, *replicates: int):
    """With one or two rows: each costs a simulation."""
    return answer(known, replicates[0], PowerQuestion(margin=2.0), replicates)


def test_one_look_is_the_noncentral_t() -> None:
    """6 replicates, two positions: 4 degrees of freedom."""
    found = table(Known(source="given", sd=3.0, rho=0.5), 6)
    row = found.tables[0].rows[0]
    assert (row.replicates, found.tables[0].sd) == (6, pytest.approx(3.0))
    assert row.power == pytest.approx(power(3.0, 2.0, 6, 0.05, columns=2), abs=1e-9)
    assert power(3.0, row.smallest, 6, 0.05, columns=2) == pytest.approx(0.8, abs=1e-4)


def test_correlation_and_replicates_buy_power() -> None:
    found = table(Known(source="given", sd=3.5, df=19), 6, 8)
    assert [one.rho for one in found.tables] == [0.0, 0.3, 0.6]
    for rows in zip(*(one.rows for one in found.tables), strict=True):
        assert [row.power for row in rows] == sorted(row.power for row in rows)
    for one in found.tables:
        smallest = [row.smallest for row in one.rows]
        assert smallest == sorted(smallest, reverse=True)
        assert one.needed.low < one.needed.replicates < one.needed.high


def test_words_say_what_the_tables_say() -> None:
    found = table(Known(source="given", sd=3.5, df=19, rho=0.3), 16)
    text = power_text(found)
    needed = found.tables[0].needed
    assert "Pair correlation 0.3 (given):" in text
    assert f"needs about {needed.replicates} seeds (80 % range {needed.low} to {needed.high})" in text
    assert "16 seeds (looks at 12, 16) find a difference of" in text
    assert "too few for a verdict" in power_text(table(Known(source="given", sd=3.5), 4))
    assert "EQUIVALENT needs 15 pairs." in power_text(table(Known(source="given", sd=3.5), 10))
    assert "EQUIVALENT" not in power_text(table(Known(source="given", sd=3.5), 16))


def test_a_question_has_one_answer() -> None:
    """Its generator is its own: numbers that were told can be told again."""
    found = table(Known(source="given", sd=1.0, rho=0.1), 10)
    rows = [one.rows[0] for one in found.tables]
    assert [row.power for row in rows] == pytest.approx([0.98371, 0.97328, 0.99624, 0.99998], abs=1e-5)
    assert [row.smallest for row in rows] == pytest.approx(
        [1.3580386242387927, 1.4314984010253782, 1.1976774901853795, 0.9053590828258619], rel=1e-9
    )


def test_an_earlier_run_gives_its_spread_within_groups_and_that_of_its_pairs() -> None:
    """A true difference of 20 points between the groups is no spread."""
    apart = Synthetic(groups={"x": Shape(accuracy=80.0), "y": Shape(accuracy=60.0)}, replicates=8)
    history = fold(apart.events())
    known = known_from_pairs(history, "EXPERIMENT")
    samples = []
    for group in ("x", "y"):
        runs = history.of_group(group)
        assert all(run.evaluation for run in runs)
        samples.append(np.array([
            np.mean([played.outcome.outcome for played in run.evaluation.episodes if played.actions == "sampled"])
            for run in runs
        ]))  # fmt: skip
    assert 10 <= known.df <= 14  # 14 if the groups shared nothing
    assert known.sd == pytest.approx(math.sqrt((samples[0].var(ddof=1) + samples[1].var(ddof=1)) / 2))
    effect = analyse(history).comparisons[0].effect
    assert (known.sd_pairs, known.df_pairs, known.rho) == (pytest.approx(effect.sd), effect.df, None)
    assert history.design.adjusted
    assert effect.df == 6


@pytest.mark.parametrize(("groups", "replicates"), [(3, 6), (4, 6)])
def test_comparisons_that_share_runs_count_once(groups: int, replicates: int) -> None:
    """Of all pairs of G groups G - 1 are independent: as chi-square limits of the SD, so many cover."""
    names = "abcd"[:groups]
    made = Synthetic(
        groups={name: Shape() for name in names}, replicates=replicates, episodes=2, settings={"alpha": 0.05},
    )  # fmt: skip
    history = fold(made.events())
    each = analyse(history).comparisons[0].effect.df
    assert known_from_pairs(history, "EXPERIMENT").df_pairs == (groups - 1) * each


def test_power_of_a_run_and_its_report_ask_for_as_many_pairs() -> None:
    """But for the looks of the new plan, and for its replicates being even."""
    history = fold(Synthetic(groups={"x": Shape(accuracy=80.0), "y": Shape(accuracy=60.0)}, replicates=8).events())
    known = known_from_pairs(history, "EXPERIMENT")
    found = answer(known, 8, PowerQuestion(margin=history.design.margin), (8,))
    reported = analyse(history).comparisons[0].pairs_anew
    assert found.tables[0].sd == known.sd_pairs
    assert found.tables[0].needed.replicates == pytest.approx(reported.pairs, rel=0.1, abs=2)
    assert "(from observed pairs, whose differences have an SD of" in power_text(found)


def test_a_correlation_that_is_given_takes_the_place_of_the_pairs(tmp_path: Path) -> None:
    run = write(tmp_path / "run", Synthetic().events())
    done = CliRunner().invoke(command, ["--experiment", str(run), "--json", "--margin", "5", "--rho", "0.5"])
    found = json.loads(done.output)
    assert found["known"]["sd_pairs"] is None
    assert found["tables"][0]["rho"] == 0.5
    assert found["tables"][0]["sd"] == pytest.approx(found["known"]["sd"])


def test_the_best_number_of_hosts_needs_fewer_pairs_where_hosts_are_few(tmp_path: Path) -> None:
    """With two episodes noise is much of the variance; the words are the numbers'."""
    run = write(tmp_path / "run", Synthetic(replicates=12, eval_episodes=2, n_envs=2).events())
    found = json.loads(CliRunner().invoke(command, ["--experiment", str(run), "--json", "--margin", "1"]).output)
    eval_episodes, table = found["eval_episodes"], found["tables"][0]
    assert eval_episodes["eval_episodes"] == 2 < eval_episodes["best"]
    assert eval_episodes["sd"] < table["sd"]
    assert eval_episodes["needed"]["replicates"] < table["needed"]["replicates"]
    assert eval_episodes["cost_times"] > 1.0
    said = " ".join(CliRunner().invoke(command, ["--experiment", str(run), "--margin", "1"]).output.split())
    assert f"With --eval-episodes {eval_episodes['best']} the SD of differences is" in said
    assert f"{eval_episodes['needed']['replicates']} seeds" in said
    assert f"instead of {table['needed']['replicates']}, " in said


def test_a_spread_that_is_given_says_nothing_of_hosts() -> None:
    assert table(Known(source="given", sd=3.0), 6).eval_episodes is None


def test_one_pair_has_no_spread() -> None:
    with pytest.raises(UsageError, match="two finished seeds"):
        known_from_pairs(fold(Synthetic(replicates=1).events()), "EXPERIMENT")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "--sd-run SD, --calibration FILE or --experiment EXPERIMENT"),
        (("--sd-run", "3", "--experiment", "x"), "give one source"),
        (("--sd-run", "0"), "--sd-run 0: it must be a positive number"),
        (("--sd-run", "nan"), "--sd-run nan"),
        (("--sd-run", "3"), "--sd-run needs --margin"),
        (("--sd-run", "3", "--rho", "1"), "--rho 1: it must be at least -1 and below 1"),
        (("--sd-run", "3", "--alpha", "0.5"), "--alpha 0.5: it must be above 0 and below 0.5"),
        (("--calibration", "nowhere.json"), "esper-ab calibrate"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_one_line(args: tuple[str, ...], words: str) -> None:
    refused = CliRunner().invoke(command, args).exception
    assert isinstance(refused, UsageError)
    assert words in str(refused)
    assert "\n" not in str(refused)


def test_json_is_one_object(tmp_path: Path) -> None:
    run = write(tmp_path / "run", Synthetic().events())
    done = CliRunner().invoke(command, ["--experiment", str(run), "--json", "--margin", "5", "--seeds", "6"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["tables"][0]["sd"] == found["known"]["sd_pairs"]
