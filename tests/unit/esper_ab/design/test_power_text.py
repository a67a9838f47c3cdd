"""The text about power: every sentence for constructed answers, and the line in a plan."""

import math
import re

import msgspec
import pytest
from scipy.stats import nct, t
from support.plans import fake_plans

from esper_ab.design.episodes_text import next_text, share_text
from esper_ab.design.outcome_windows import WindowNeeds, WindowSpread
from esper_ab.design.power import PowerRow, PowerTable, ReplicatesNeeded, Stops, assumed, observed
from esper_ab.design.power_tables import RHO, EvalEpisodesAnswer, Known, PowerAnswer, answer, spreads
from esper_ab.design.power_text import KnownSD, design_power_line, power_text
from esper_ab.design.scheme import PowerQuestion
from esper_ab.design.window_advice import GroupChange
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.stats.curve_change import CurveChange
from esper_ab.stats.evaluation_noise import Components

NEEDED = ReplicatesNeeded(replicates=20, low=12, high=40)
STOPS = Stops(power=0.46, expected=13.0, expected_none=11.5, expected_none_without=15.9)
UNKNOWN = "Pair correlation unknown: it depends on how much of the shared randomness survives training."


def make_row(replicates=16, **changes):
    sizes = {"smallest": 3.25, "smallest_low": 2.0, "smallest_high": 7.0, "power": 0.5, "expected": 15.0}
    return PowerRow(replicates=replicates, looks=(12, replicates), nominal_p=(0.01, 0.045), **(sizes | changes))


def make_table(rho, rows, needed_seeds=NEEDED):
    return PowerTable(
        sd_run=3.5,
        rho=rho,
        sd=4.95,
        sd_low=None,
        sd_high=None,
        question=PowerQuestion(margin=2.0, comparisons=3),
        rows=tuple(rows),
        needed=needed_seeds,
    )


def make_lines(known_spread, first_row=None, needed_seeds=NEEDED, eval_episodes=None):
    first_row = first_row or make_row()
    tables = make_table(0.3, [first_row], needed_seeds), make_table(0.6, [make_row(first_row.replicates, power=0.75)])
    answer = PowerAnswer(
        known=known_spread, replicates=first_row.replicates, tables=tables, eval_episodes=eval_episodes
    )
    return power_text(answer).splitlines()


def make_known(**changes):
    return Known(source="given", sd=3.5, unit="points", **changes)


def make_needed(replicates, low=None, high=None):
    return ReplicatesNeeded(replicates=replicates, low=low, high=high)


def test_the_text_about_power_has_its_expected_lines():
    assert make_lines(make_known(df=9, rho=0.3)) == [
        "To find a difference of 2 points with 80 % power: 20 seeds.",
        "",
        "Run SD 3.5 points (given, 9 degrees of freedom); margin 2 points; alpha 0.05 shared by 3 comparisons.",
        "",
        "Pair correlation 0.3 (given):",
        "  16 seeds (looks at 12, 16) find a difference of 3.2 points (80 % range 2 to 7) with 80 % power, and a "
        "difference of the margin with 50 %.",
        "  A difference of 2 points needs about 20 seeds (80 % range 12 to 40).",
        "",
        "Pair correlation 0.6:",
        "  16 seeds (looks at 12, 16) find a difference of 3.2 points (80 % range 2 to 7) with 80 % power, and a "
        "difference of the margin with 75 %.",
        "  A difference of 2 points needs about 20 seeds (80 % range 12 to 40).",
        "",
        "Smallest difference in points found with 80 % power / power at 2 points:",
        "  seeds  looks      rho 0.3      rho 0.6",
        "     16  12,16  3.25 / 50 %  3.25 / 75 %",
    ]


WITH_16_SEEDS = "16 seeds (looks at 12, 16) find a difference of 3.2 points"
AT_THE_MARGIN = "with 80 % power, and a difference of the margin with 50 %."
LINES = [  # changes of the known spread, changes of the row of 16 seeds, seeds needed, line
    ({}, {}, NEEDED, UNKNOWN),
    ({}, {}, NEEDED, "Pair correlation 0.3:"),
    (
        {"sd_pairs": 4.95, "df_pairs": 5},
        {},
        NEEDED,
        "Pair correlation 0.3 (from observed pairs, whose differences have an SD of 4.95 with 5 degrees of freedom):",
    ),
    ({}, {"smallest_low": None}, NEEDED, f"{WITH_16_SEEDS} {AT_THE_MARGIN}"),
    ({}, {"smallest": None}, NEEDED, "16 seeds are too few for a verdict, which needs 6."),
    (
        {},
        {"replicates": 14},
        NEEDED,
        "14 seeds (looks at 12, 14) find a difference of 3.2 points (80 % range 2 to 7) "
        f"{AT_THE_MARGIN} EQUIVALENT needs 15 pairs.",
    ),
    (
        {},
        {"stops": STOPS},
        NEEDED,
        f"{WITH_16_SEEDS} (80 % range 2 to 7) {AT_THE_MARGIN} Stopping for futility costs "
        "0.040 of that power. On average it uses 11.5 seeds instead of 15.9 if nothing differs, and 13.0 instead of "
        "15.0 if the difference equals the margin.",
    ),
    ({}, {"stops": STOPS, "expected": None}, NEEDED, f"{WITH_16_SEEDS} (80 % range 2 to 7) {AT_THE_MARGIN}"),
    ({}, {}, make_needed(20, 20, 20), "A difference of 2 points needs 20 seeds."),
    ({}, {}, make_needed(20, 12), "A difference of 2 points needs about 20 seeds (80 % range 12 to more than 10,000)."),
    ({}, {}, make_needed(None), "A difference of 2 points needs more than 10,000 seeds."),
]


@pytest.mark.parametrize(("spread", "changes", "seeds", "line"), LINES)
def test_every_part_of_the_power_text_has_its_line(spread, changes, seeds, line):
    lines = [text.strip() for text in make_lines(make_known(**spread), make_row(**changes), needed_seeds=seeds)]
    assert line in lines
    assert (UNKNOWN in lines) != bool(spread)


WITH_32 = "With --eval-episodes 32 the SD of differences is 3 instead of 4.95, and a run costs 1.50 times as much:"
INSTEAD = "A difference of 2 points needs about 10 seeds (80 % range 8 to 30) instead of"


@pytest.mark.parametrize(
    ("best_episodes", "seeds", "lines"),
    [
        (None, NEEDED, []),
        (16, NEEDED, ["--eval-episodes 16, as used here, has the least variance x cost."]),
        (32, NEEDED, [WITH_32, f"{INSTEAD} 20, 0.75 times the compute."]),
        (32, make_needed(None, 12), [WITH_32, f"{INSTEAD} more than 10,000."]),
    ],
)
def test_the_power_text_states_the_effect_of_other_evaluation_episodes(best_episodes, seeds, lines):
    answer = best_episodes and EvalEpisodesAnswer(
        eval_episodes=16,
        share=0.5,
        cost_share=0.2,
        best=best_episodes,
        sd=3.0,
        cost_times=1.5,
        needed=make_needed(10, 8, 30),
    )
    components = msgspec.structs.replace(SEEN, eval_episodes=16, share=0.5, share_high=0.75)
    noisy_spread = make_known(rho=0.3, noise=make_noise(components, episodes=6))
    text = [line.strip() for line in make_lines(noisy_spread, needed_seeds=seeds, eval_episodes=answer)]
    first_words = (
        "Evaluation noise is 50 % (80 % limits 25 to 75) of the variance, with 16 episodes that make up 20 % of the "
    )
    stated_lines = [text[n + 1 : n + 1 + len(lines)] for n, line in enumerate(text) if line.startswith(first_words)]
    assert stated_lines == [lines] * bool(best_episodes)
    assert not any("Evaluation noise" in line for line in make_lines(make_known(rho=0.3), eval_episodes=answer))


@pytest.mark.parametrize("seeds", [6, 10])
def test_the_power_of_a_plan_equals_the_noncentral_t(seeds):
    """At one look, by scipy: pairs of uncorrelated runs, whose differences have sqrt(2) times the SD of a run."""

    def power(effect):  # in SDs of a run
        return nct.sf(t.isf(0.025, seeds - 1), seeds - 1, effect * math.sqrt(seeds / 2.0))

    design = fake_plans.plan(seeds=seeds).design
    line = design_power_line(design, 1.5)
    power_at_margin, power_at_twice = (f"{100.0 * power(times * 2.0 / 1.5):.0f} %" for times in (1, 2))
    assert (
        line
        == f"Run-to-run SD 1.5 points: power {power_at_margin} at the margin, {power_at_twice} at twice the margin."
    )
    sds = float(re.search(r"difference of ([\d.]+) run-to-run SDs", design_power_line(design, None))[1])
    assert power(sds * 1.03) > 0.8 > power(sds * 0.97)


def test_a_plan_with_a_known_spread_of_pairs_states_the_detectable_difference():
    design = fake_plans.plan(seeds=6).design
    line = design_power_line(design, None, KnownSD(5.5, "a page"))
    (points,) = re.findall(r"about ([\d.]+) points .*SD of pairs 5.5, from a page", line)
    effect = float(points) / 5.5 * math.sqrt(6)  # noncentrality of the paired t
    assert nct.sf(t.isf(0.025, 5), 5, effect * 1.03) > 0.8 > nct.sf(t.isf(0.025, 5), 5, effect * 0.97)
    assert design_power_line(design, 1.5, KnownSD(5.5, "a page")).startswith(
        "Run-to-run SD 1.5"
    )  # measured for this plan


def test_a_calibration_without_spread_tells_nothing_about_power():
    line = design_power_line(fake_plans.plan(seeds=6).design, 0.0)
    assert line == "The runs of the calibration did not differ, so the power of this plan is unknown."


def test_the_power_text_ends_with_the_windows_of_a_calibration():
    windows = (
        WindowNeeds(outcome_over="evaluation", mean=71.25, sd=3.5, seeds=(50, 28)),
        WindowNeeds(outcome_over="last-third", mean=70.0, sd=2.0, seeds=(None, 12)),
    )
    tables = make_table(0.3, [make_row()]), make_table(0.6, [make_row()])
    answer = PowerAnswer(known=make_known(), replicates=16, tables=tables, windows=windows)
    assert power_text(answer).splitlines()[-5:-2] == [
        "  outcome-over   mean  SD of runs   rho 0.3  rho 0.6  estimates",
        "    evaluation  71.25         3.5        50       28  the result after training",
        "    last-third  70.00           2  > 10,000       12  the last third of training",
    ]


def test_the_power_text_has_the_advice_on_the_last_third_below_the_windows():
    flat = GroupChange(group="a", change=CurveChange(runs=12, mean=0.0, low=-0.1, high=0.1))
    windows = (
        WindowSpread(outcome_over="evaluation", mean=71.25, sd=3.5),
        WindowSpread(outcome_over="last-third", mean=70.0, sd=2.0),
    )
    known = make_known(windows=windows, group_changes=(flat,))
    lines = power_text(answer(known, 16, PowerQuestion(margin=2.0), rows=(16,))).splitlines()
    (place,) = (place for place, line in enumerate(lines) if line.startswith("Recommended: --outcome-over last-third"))
    assert lines[place - 1].startswith("Declare the part before the runs")


def test_futility_stops_lower_the_power_of_a_plan():
    looks = [fake_plans.plan(seeds=16, looks=(8, 16), **changes).design for changes in ({}, {"futility": 0.5})]
    plain_power, stops = (int(re.search(r"power (\d+) %", design_power_line(design, 2.0))[1]) for design in looks)
    assert 50 < stops < plain_power - 10 < 70


@pytest.mark.parametrize("changes", [{"seeds": 5}, {"seeds": 6, "open_ended": True}])
def test_a_plan_without_a_possible_verdict_has_no_power_line(changes):
    design = fake_plans.plan(**changes).design
    assert [design_power_line(design, sd) for sd in (None, 2.0)] == ["", ""]


@pytest.mark.parametrize(
    ("counts", "first_line"),
    [
        ((20,), "To find a difference of 2 points with 80 % power: 20 seeds."),
        (
            (20, 12),
            "To find a difference of 2 points with 80 % power: 12 to 20 seeds, depending on how similar the two "
            "runs of a pair are.",
        ),
        (
            (20, None),
            "To find a difference of 2 points with 80 % power: 20 to more than 10,000 seeds, depending on how "
            "similar the two runs of a pair are.",
        ),
        ((None,), "To find a difference of 2 points with 80 % power: more than 10,000 seeds."),
    ],
)
def test_the_power_text_begins_with_the_number_of_seeds(counts, first_line):
    tables = tuple(make_table(0.3, [make_row()], make_needed(count)) for count in counts)
    answer = PowerAnswer(known=make_known(), replicates=16, tables=tables, eval_episodes=None)
    assert power_text(answer).splitlines()[0] == first_line


# Evaluation noise in words: a share is at most 100 %, and a promised saving is a lower limit.


# CLIPPED: from 24 pairs without visible policy variance. SEEN: from 6 pairs with some policy variance.
CLIPPED = Components(
    runs=24, eval_episodes=16, policy=-5.0, episode=280.0, share=1.39, share_low=0.87, share_high=1.99, ratio_high=0.0
)
SEEN = Components(
    runs=6, eval_episodes=24, policy=2.0, episode=180.0, share=0.79, share_low=0.25, share_high=1.49, ratio_high=0.2
)


def make_noise(components: Components, episodes: int = 24, n_envs: int = 8) -> EvaluationNoise:
    return EvaluationNoise(
        components=components, episodes=episodes, n_envs=n_envs, training_episode_s=1.0, evaluation_episode_s=1.0
    )


def test_the_saving_from_more_episodes_is_stated_conservatively() -> None:
    """With 800 episodes the share of 0.87 falls to a fiftieth: 0.13 + 0.87 / 50 instead of 1 / 50."""
    noise = make_noise(CLIPPED)
    assert share_text(noise) == "100 % (80 % limits 87 to 100)"  # at most all of it
    assert noise.next_eval_episodes == 800
    assert noise.variance_times(800) == pytest.approx(0.13 + 0.87 * 16 / 800)
    text = next_text(noise)
    assert text.startswith("--eval-episodes 800: at most 0.15 times the variance at 4.63 times the cost of a run, so ")
    assert "at least 85 % fewer pairs (a verdict needs 6) and at least 32 % less compute for" in text


def test_the_cost_of_fewer_episodes_follows_from_the_estimated_variance() -> None:
    noise = make_noise(SEEN, episodes=6, n_envs=6)
    assert share_text(noise) == "79 % (80 % limits 25 to 100)"
    assert noise.next_eval_episodes == 12
    times = (2.0 + 180 / 12) / (2.0 + 180 / 24)
    assert noise.variance_times(12) == pytest.approx(times)
    assert f"--eval-episodes 12: {times:.2f} times the variance" in next_text(noise)
    assert f"so {100 * (times - 1):.0f} % more pairs and" in next_text(noise)
    assert "at most" not in next_text(noise)


# The spreads of pairs for which an answer is given.


ASSUMED = tuple(assumed(3.5, rho, df=9) for rho in RHO)


@pytest.mark.parametrize(
    ("pairs", "first_spreads"),
    [
        ({"sd_pairs": 4.0, "df_pairs": 5}, (observed(3.5, 4.0, 5),)),
        ({"sd_pairs": 4.0}, ()),
        ({"df_pairs": 5}, ()),
    ],
)
def test_observed_pairs_are_listed_before_assumed_correlations(pairs, first_spreads):
    assert spreads(Known(source="given", sd=3.5, df=9, **pairs), RHO) == (*first_spreads, *ASSUMED)
