"""`esper-ab power` takes the spread from earlier runs; tests of `design` cover the power itself."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from support.journals.ready_journals import write
from support.journals.synthetic import Shape, Synthetic

from esper_ab.analysis.analyse import analyse
from esper_ab.analysis.pair_spread import known_from_pairs
from esper_ab.commands.power import command
from esper_ab.design.power_tables import answer
from esper_ab.design.power_text import power_text
from esper_ab.design.scheme import PowerQuestion
from esper_ab.journal.fold import fold
from esper_ab.journal.outcomes import outcomes


@pytest.fixture(scope="module")
def history():
    """Of two groups whose true difference is 20 points."""
    return fold(Synthetic(groups={"x": Shape(accuracy=80.0), "y": Shape(accuracy=60.0)}, replicates=8).events())


def test_power_uses_the_spreads_observed_in_an_earlier_experiment(history):
    """A true difference between the groups is no spread."""
    known_spread = known_from_pairs(history, "EXPERIMENT")
    outcomes_by_run = outcomes(history)
    outcomes_of_x, outcomes_of_y = (
        [outcomes_by_run[run.ref.name].outcome for run in history.of_group(group)] for group in "xy"
    )
    assert 10 <= known_spread.df <= 14  # 14 if the groups shared nothing
    assert known_spread.sd == pytest.approx(
        math.sqrt((np.var(outcomes_of_x, ddof=1) + np.var(outcomes_of_y, ddof=1)) / 2)
    )
    effect = analyse(history).comparisons[0].effect
    assert (known_spread.sd_pairs, known_spread.df_pairs, known_spread.rho) == (
        pytest.approx(effect.sd),
        effect.df,
        None,
    )
    assert history.design.adjusted
    assert effect.df == 6


@pytest.mark.parametrize("groups", [3, 4])
def test_only_independent_comparisons_add_degrees_of_freedom(groups):
    """Of all pairs of G groups G - 1 are independent: as chi-square limits of the SD, so many cover."""
    synthetic_experiment = Synthetic(
        groups=dict.fromkeys("abcd"[:groups], Shape()), episodes=2, settings={"alpha": 0.05}
    )
    history = fold(synthetic_experiment.events())
    df_of_one = analyse(history).comparisons[0].effect.df
    assert known_from_pairs(history, "EXPERIMENT").df_pairs == (groups - 1) * df_of_one


def test_power_and_report_agree_on_the_number_of_pairs_needed(history):
    """But for the looks of the new plan, and for its replicates being even."""
    known_spread = known_from_pairs(history, "EXPERIMENT")
    power_answer = answer(known_spread, 8, PowerQuestion(margin=history.design.margin), (8,))
    new_plan_pairs = analyse(history).comparisons[0].pairs_anew
    assert power_answer.tables[0].sd == known_spread.sd_pairs
    assert power_answer.tables[0].needed.replicates == pytest.approx(new_plan_pairs.pairs, rel=0.1, abs=2)
    assert "(from observed pairs, whose differences have an SD of" in power_text(power_answer)


def test_a_given_correlation_replaces_the_observed_spread_of_pairs(tmp_path):
    run = write(tmp_path / "run", Synthetic().events())
    flags = ("--margin", "5", "--rho", "0.5", "--seeds", "6")
    document = json.loads(CliRunner().invoke(command, ["--experiment", str(run), "--json", *flags]).output)
    assert document["known"]["sd_pairs"] is None
    assert document["tables"][0]["rho"] == 0.5
    assert document["tables"][0]["sd"] == pytest.approx(document["known"]["sd"])
