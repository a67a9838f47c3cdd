"""The chance of each verdict in words: the table, and the sentences on what would decide more often or cost less."""

import re

import pytest
from support.plans import fake_plans

from esper_ab.design.claim_endings import ClaimEndings
from esper_ab.design.endings_text import (
    AssumedSpread,
    advice,
    claim_table,
    endings_lines,
    endings_table,
    open_ended_line,
)
from esper_ab.design.pairs_needed import fewest_pairs
from esper_ab.design.simulation import Endings

MARGIN = 2.0  # of fake plans


def make_design(seeds, **changes):
    return fake_plans.plan(seeds=seeds, **changes).design


def make_spread(sd):
    return AssumedSpread(sd=sd, margin=MARGIN, unit="points")


def cost(seeds):
    return f"{seeds:.0f} h"


def test_the_table_has_a_row_for_each_verdict_and_a_column_for_each_difference():
    endings = [
        Endings(better=0.02, worse=0.03, small=0.5, undecided=0.45, replicates=15.96),
        Endings(better=0.1, worse=0.0, small=0.3, undecided=0.6, replicates=15.5),
        Endings(better=0.5, worse=0.0, small=0.0, undecided=0.5, replicates=15.0),
        Endings(better=1.0, worse=0.0, small=0.0, undecided=0.0, replicates=14.0),
    ]
    assert endings_table("Chances", endings, MARGIN, "points", cost) == [
        "Chances by the true difference in points:",
        "                              0     1     2      4",
        "                   better   2 %  10 %  50 %  100 %",
        "                    worse   3 %   0 %   0 %    0 %",
        "  smaller than the margin  50 %  30 %   0 %    0 %",
        "                undecided  45 %  60 %  50 %    0 %",
        "         seeds on average  16.0  15.5  15.0   14.0",
        "                     time  16 h  16 h  15 h   14 h",
    ]


def test_a_plan_of_six_seeds_has_no_chance_to_call_a_difference_small():
    title, *rows = endings_lines(make_design(6), make_spread(1.0), cost)
    assert title == "Chance of each verdict by the true difference in points:"
    (small,) = (row for row in rows if "smaller than the margin" in row)
    assert small.split()[4:] == ["0", "%"] * 4


@pytest.mark.parametrize("changes", [{"seeds": 5}, {"seeds": 6, "open_ended": True}])
def test_a_plan_without_a_possible_verdict_or_a_maximum_lists_no_chances(changes):
    assert endings_lines(fake_plans.plan(**changes).design, make_spread(1.0), cost) == []


def test_a_plan_that_probably_stays_undecided_says_how_many_seeds_would_decide():
    (sentence,) = advice(make_design(6), make_spread(5.5), cost)
    numbers = re.fullmatch(
        r"A true difference of 2 points, the margin, would probably stay undecided \((\d+) %\); about (\d+) seeds "
        r"\((\d+) h\) would find it with 80 % power\.",
        sentence,
    )
    share, seeds, hours = map(int, numbers.groups())
    assert share > 80
    assert hours == seeds
    assert advice(make_design(seeds + seeds % 2), make_spread(5.5), cost) == []


def test_a_plan_that_decides_about_its_margin_gets_no_advice():
    assert advice(make_design(6), make_spread(1.0), cost) == []


def test_no_number_of_seeds_up_to_10_000_is_said_if_none_suffices():
    (sentence,) = advice(make_design(6), make_spread(900.0), cost)
    assert sentence.endswith("more than 10,000 seeds would find it with 80 % power.")


def test_stops_for_futility_are_proposed_with_their_price_where_equality_is_seldom_shown():
    spread = make_spread(4.8)
    proposal = advice(make_design(30), spread, cost)[-1]
    assert re.fullmatch(
        r"If nothing differs, --futility 0\.8 ends after \d+ seeds on average instead of 30, but shows that in \d+ % "
        r"instead of \d+ % of experiments; it costs \d points of power at the margin\.",
        proposal,
    )
    stopping = advice(make_design(30, futility=0.8), spread, cost)
    assert not any("--futility" in sentence for sentence in stopping)


@pytest.mark.parametrize(("sd", "why"), [(1.5, "equality is shown"), (9.0, "hardly any seeds are saved")])
def test_stops_for_futility_are_not_proposed_where_they_gain_nothing(sd, why):
    assert not any("--futility" in sentence for sentence in advice(make_design(30), make_spread(sd), cost)), why


def test_an_open_ended_plan_says_its_price_beside_a_plan_with_a_maximum():
    (sentence,) = advice(make_design(6, open_ended=True), make_spread(2.0), cost)
    numbers = re.fullmatch(
        r"To find a difference of the margin, --seeds auto needs (\d+) seeds on average \((\d+) h\), and up to (\d+) "
        r"in 4 of 5 experiments; --seeds (\d+) \((\d+) h\) finds it with 80 % power\.",
        sentence,
    )
    mean, mean_hours, most, seeds, hours = map(int, numbers.groups())
    assert (mean_hours, hours) == (mean, seeds)
    assert seeds == fewest_pairs(2.0, MARGIN, 0.05)
    assert seeds < mean < most
    assert advice(make_design(6, open_ended=True), make_spread(900.0), cost) == []


def test_the_table_of_a_one_sided_claim_has_worse_groups_on_its_right():
    endings = [
        ClaimEndings(better=0.1, not_worse=0.8, worse=0.0, undecided=0.1, replicates=16.0),
        ClaimEndings(better=0.02, not_worse=0.6, worse=0.02, undecided=0.36, replicates=17.5),
        ClaimEndings(better=0.0, not_worse=0.2, worse=0.2, undecided=0.6, replicates=19.0),
        ClaimEndings(better=0.0, not_worse=0.05, worse=0.5, undecided=0.45, replicates=18.0),
    ]
    assert claim_table("Chances", endings, MARGIN, "points", cost) == [
        "Chances by the true difference in points (below 0, the group is worse):",
        "                    +1.00  0.00  -1.00  -2.00",
        "            better   10 %   2 %    0 %    0 %",
        "         not worse   80 %  60 %   20 %    5 %",
        "             worse    0 %   2 %   20 %   50 %",
        "         undecided   10 %  36 %   60 %   45 %",
        "  seeds on average   16.0  17.5   19.0   18.0",
        "              time   16 h  18 h   19 h   18 h",
    ]


def test_a_one_sided_plan_says_how_many_seeds_would_show_its_claim():
    plan = make_design(20, claim="not-worse")
    (sentence,) = advice(plan, make_spread(5.5), cost)
    numbers = re.fullmatch(
        r"Groups that do not differ would probably stay undecided \((\d+) %\); about (\d+) seeds \(\d+ h\) would show "
        r"with 80 % power that one is not worse by the margin\.",
        sentence,
    )
    assert 45 < int(numbers[1]) < 55
    assert 46 < int(numbers[2]) < 52
    assert advice(plan, make_spread(1.0), cost) == []
    assert "not worse" in " ".join(endings_lines(plan, make_spread(1.0), cost))


def test_an_open_ended_plan_with_an_unknown_spread_says_its_price_at_one_standard_deviation():
    design = make_design(6, open_ended=True)
    line = open_ended_line(design, cost)
    assert line.startswith("To find a difference of one run-to-run SD, --seeds auto needs ")
    assert f"; --seeds {fewest_pairs(2.0**0.5, 1.0, 0.05)} (" in line
    three = make_design(6, open_ended=True, groups=("a", "b", "c"), cores=3)
    assert open_ended_line(three, cost) != line
