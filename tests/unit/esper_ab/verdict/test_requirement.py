"""--fail-unless: what is refused, what each verdict supports, and the exit status of `report`."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import msgspec
import pytest
from support.comparing import SMALL, A, B, compared, design, pairs_of
from support.journals import Synthetic, planted_effect, same_twice, write

from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.contracts.errors import ConditionNotMet, UsageError
from esper_ab.design.design import Boundary, Contrast, Futility
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.verdict.pairing import HalfPair, Lost
from esper_ab.verdict.requirement import RELATIONS, Requirement, holds, parse_requirement, require
from esper_ab.verdict.vocabulary import Finding, Verdict

GROUPS = ("shaped", "simplified", "wait")
COMPARED = (Contrast(a="shaped", b="simplified"), Contrast(a="shaped", b="wait"))

TWO_LOOKS = (Boundary(open=1, alpha=0.05, nominal_p=(1e-9, 0.05)),)  # the first look can claim nothing but the margin's


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("shaped simplified", "two groups with one of"),
        ("shaped better-than", "two groups with one of"),
        ("better-than shaped", "two groups with one of"),
        ("shaped better-than worse-than simplified", "two groups with one of"),
        ("shaped beats simplified", "two groups with one of"),
        ("shapd better-than simplified", "did you mean shaped"),
        ("simplified better-than wait", "compared are shaped with simplified, shaped with wait"),
        ("shaped better-than shaped", "not compared"),
    ],
)
def test_what_cannot_be_judged_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        parse_requirement(text, GROUPS, COMPARED)


def test_names_may_have_spaces_and_stand_on_either_side():
    found = parse_requirement(" my  group better-than b ", ("my group", "b"), (Contrast(a="b", b="my group"),))
    assert (found.left, found.relation, found.right) == ("my group", "better-than", "b")


@pytest.fixture(scope="module")
def comparison():
    """shaped - simplified, decided at its only look; interval +3.8 to +7.9."""
    return content(fold(planted_effect())).comparisons[0]


def supported(comparison, left="shaped", right="simplified"):
    return {
        relation
        for relation in RELATIONS
        if holds(parse_requirement(f"{left} {relation} {right}", GROUPS, COMPARED), comparison)
    }


@pytest.mark.parametrize(
    ("verdict", "forwards", "backwards"),
    [
        (Verdict.BETTER, {"better-than", "not-worse-than"}, {"worse-than"}),
        (Verdict.WORSE, {"worse-than"}, {"better-than", "not-worse-than"}),
        (Verdict.BETTER_BELOW_MARGIN, {"better-than", "equivalent-to", "not-worse-than"},
         {"worse-than", "equivalent-to", "not-worse-than"}),
        (Verdict.WORSE_BELOW_MARGIN, {"worse-than", "equivalent-to", "not-worse-than"},
         {"better-than", "equivalent-to", "not-worse-than"}),
        (Verdict.EQUIVALENT, {"equivalent-to", "not-worse-than"}, {"equivalent-to", "not-worse-than"}),
        (Verdict.IDENTICAL, {"equivalent-to", "not-worse-than"}, {"equivalent-to", "not-worse-than"}),
        (Verdict.BLOCKED, set(), set()),
        (Verdict.NO_INFERENCE, set(), set()),
        (Verdict.INCONCLUSIVE, set(), set()),  # of six pairs
    ],
)  # fmt: skip
def test_what_each_verdict_supports(comparison, verdict, forwards, backwards):
    judged = replace(comparison, verdict=verdict)
    assert supported(judged) == forwards
    assert supported(judged, "simplified", "shaped") == backwards


def with_look(comparison, **fields):
    look = msgspec.structs.replace(comparison.course.looks[0], **({"pairs": 15} | fields))
    course = msgspec.structs.replace(comparison.course, looks=(look,))
    limits = (look.low, look.high)
    return replace(comparison, verdict=Verdict.INCONCLUSIVE, course=course, limits_with_losses=limits)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"low": -1.9, "high": 9.0}, True),
        ({"low": -2.0, "high": 9.0}, False),
        ({"low": None, "high": None}, False),
        ({"low": 1.0, "high": 9.0, "pairs": 14}, False),
    ],
)
def test_not_worse_of_an_open_comparison_is_non_inferiority_at_the_margin(comparison, fields, expected):
    assert ("not-worse-than" in supported(with_look(comparison, **fields))) is expected


@pytest.mark.parametrize(
    ("better", "left", "low", "high"),
    [
        ("higher", "shaped", -1.9, 9.0),
        ("higher", "simplified", -9.0, 1.9),
        ("lower", "shaped", -9.0, 1.9),
        ("lower", "simplified", -1.9, 9.0),
    ],
)
def test_not_worse_looks_at_the_end_where_the_left_group_would_be_worse(comparison, better, left, low, high):
    right = "simplified" if left == "shaped" else "shaped"
    away = math.copysign(0.2, low + high)  # from the margin
    for shift, holds_there in ((0.0, True), (away, True), (-away, False)):
        judged = with_look(comparison, low=low + shift, high=high + shift)
        measures = judged.design.measures
        outcome = msgspec.structs.replace(measures.outcome, better=better)
        turned = msgspec.structs.replace(judged.design, measures=msgspec.structs.replace(measures, outcome=outcome))
        judged = replace(judged, question=msgspec.structs.replace(judged.question, design=turned))
        assert ("not-worse-than" in supported(judged, left, right)) is holds_there


def test_not_worse_needs_a_look_no_cap_and_limits_that_hold_whatever_was_lost(comparison):
    good = with_look(comparison, low=1.0, high=9.0)
    baseline = Finding(kind="baseline", weight="caps equivalence", groups=(), sentence="Both are at chance.")
    assert supported(good) == {"not-worse-than"}
    assert supported(replace(good, findings=(baseline,))) == set()
    assert supported(replace(good, capped_by=("Because.",))) == set()
    assert supported(replace(good, limits_with_losses=(None, None))) == set()
    assert supported(replace(good, limits_with_losses=(-2.1, 9.0))) == set()
    assert supported(replace(good, course=msgspec.structs.replace(good.course, looks=()))) == set()


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict])
def test_no_verdict_that_is_capped_or_of_too_few_pairs_or_without_a_look_supports_anything(comparison, verdict):
    look = comparison.course.looks[0]
    few = msgspec.structs.replace(comparison.course, looks=(msgspec.structs.replace(look, pairs=5),))
    none = msgspec.structs.replace(comparison.course, looks=())
    for change in ({"course": few}, {"course": none}, {"capped_by": ("It did not train.",)}):
        judged = replace(comparison, verdict=verdict, **change)
        assert supported(judged) == supported(judged, "simplified", "shaped") == set()


def test_identical_with_runs_lost_in_one_group_only_supports_nothing(comparison):
    half = HalfPair(replicate=6, a=70.0, b=None, failed_a=False, failed_b=True, position_a=0, position_b=1)
    judged = replace(comparison, verdict=Verdict.IDENTICAL, lost=Lost(replicates=(half,)))
    assert supported(judged) == set()


def test_too_few_pairs_are_named_as_the_reason(tmp_path, capsys):
    run = write(tmp_path / "run", same_twice(replicates=2))
    assert report(run, "--fail-unless", "a equivalent-to b") == 12
    said = "a against b is IDENTICAL of 2 pairs; every requirement needs a look with at least 6 pairs"
    assert said in capsys.readouterr().err
    whole = write(tmp_path / "whole", same_twice())
    assert report(whole, "--fail-unless", "a equivalent-to b", "--fail-unless", "b not-worse-than a") == 0


def test_what_speaks_of_the_margin_says_how_many_pairs_it_needs(comparison):
    judged = replace(comparison, verdict=Verdict.INCONCLUSIVE)
    said = "INCONCLUSIVE of 6 pairs; that a difference is smaller than the margin needs 15"
    for relation in ("equivalent-to", "not-worse-than"):
        with pytest.raises(ConditionNotMet, match=said):
            require([parse_requirement(f"shaped {relation} simplified", GROUPS, COMPARED)], [judged])
    with pytest.raises(ConditionNotMet, match=r"is INCONCLUSIVE$"):
        require([parse_requirement("shaped better-than simplified", GROUPS, COMPARED)], [judged])


def test_every_condition_that_does_not_hold_is_named(comparison):
    asked = [
        parse_requirement(text, GROUPS, COMPARED)
        for text in ("shaped better-than simplified", "shaped worse-than simplified", "shaped equivalent-to simplified")
    ]
    require(asked[:1], [comparison])
    with pytest.raises(ConditionNotMet, match=r"worse-than.*is BETTER; .*equivalent-to"):
        require(asked, [comparison])


def report(*arguments) -> int:
    return invoke(group, ["report", *map(str, arguments)], "esper-ab")


def test_exit_statuses_of_report(tmp_path, capsys):
    run = write(tmp_path / "run", planted_effect())
    assert report(run, "--fail-unless", "shaped better-than simplified") == 0
    assert report(run, "--fail-unless", "simplified better-than shaped") == 12
    assert "does not hold: shaped against simplified is BETTER" in capsys.readouterr().err
    assert report(run, "--fail-unless", "simplified better-than shapd") == 2
    assert "did you mean shaped?" in capsys.readouterr().err


def test_json_stays_one_document_when_a_condition_does_not_hold(tmp_path, capsys):
    run = write(tmp_path / "run", same_twice())
    assert report(run, "--json", "--fail-unless", "a better-than b") == 12
    assert json.loads(capsys.readouterr().out)["comparisons"][0]["verdict"] == "IDENTICAL"


def test_formats(tmp_path, capsys):
    run = write(tmp_path / "run", Synthetic(replicates=2, episodes=2).events())
    assert report(run, "--format", "md") == 0
    assert capsys.readouterr().out.startswith("## shaped against simplified")
    assert report(run, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 6
    assert report(run, "--json", "--format", "md") == 2
    assert sorted(path.name for path in run.iterdir() if path.suffix in (".md", ".txt")) == ["summary.txt"]


@pytest.mark.parametrize(("count", "baseline"), [(6, False), (16, True)])
def test_a_stop_for_futility_supports_nothing_but_what_its_interval_shows(count, baseline):
    """Of 6 pairs nothing; from 15 on non-inferiority, where the repeated interval lies above the margin."""
    stops = Futility(power=0.8, nominal_p=(0.09, 0.0))
    rule = design(20, looks=(count, 20), boundaries=TWO_LOOKS, futility=stops, margin=0.65)
    found = compared(rule, pairs_of(70.3 + SMALL[:count], [70.0] * count))
    assert found.inconclusive == "futile"
    held = {one for one in RELATIONS if holds(Requirement(left=A, relation=one, right=B), found)}
    assert held == ({"not-worse-than"} if baseline else set())
    with pytest.raises(ConditionNotMet, match="shaped against simplified is INCONCLUSIVE, stopped for futility"):
        require([Requirement(left=A, relation="better-than", right=B)], [found])
