"""--fail-unless: what is refused, what each verdict supports, and the exit status of `report`."""

import json
import math
from dataclasses import replace

import msgspec
import pytest
from support.journals.ready_journals import planted_effect, same_twice, write
from support.outcomes.compared_designs import SMALL, A, B, compared, design, lost, pairs_of

from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.contracts.errors import ConditionNotMet, UsageError
from esper_ab.design.design import Boundary, Contrast, Futility
from esper_ab.journal.fold import fold
from esper_ab.readers.external_plan import make_external_plan
from esper_ab.readers.scales import scales_of
from esper_ab.report.content import content
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.finding import Finding
from esper_ab.verdict.judge import judge
from esper_ab.verdict.observations import Observation, Observations
from esper_ab.verdict.requirement import RELATIONS, Requirement, holds, parse_requirement, require
from esper_ab.verdict.verdict import Verdict

GROUPS = ("shaped", "simplified", "wait")
COMPARED = (Contrast(a="shaped", b="simplified"), Contrast(a="shaped", b="wait"))


def asked(text):
    return parse_requirement(text, GROUPS, COMPARED)


@pytest.mark.parametrize(
    "text",
    [
        "shaped better-than",
        "better-than shaped",
        "shaped better-than worse-than simplified",
        "shaped better-than shaped",
    ],
)
def test_what_cannot_be_judged_is_refused(text):
    with pytest.raises(UsageError):
        asked(text)


def test_names_may_have_spaces_and_stand_on_either_side():
    found = parse_requirement(" my  group better-than b ", ("my group", "b"), (Contrast(a="b", b="my group"),))
    assert (found.left, found.relation, found.right) == ("my group", "better-than", "b")


@pytest.fixture(scope="module")
def comparison():
    """shaped - simplified, decided at its only look; interval +3.8 to +7.9."""
    return content(fold(planted_effect())).comparisons[0]


def supported(comparison, left=A, right=B):
    held = {Requirement(left=left, relation=one, right=right) for one in RELATIONS}
    return {one.relation for one in held if holds(one, comparison)}


BOTH = {"equivalent-to", "not-worse-than"}


@pytest.mark.parametrize(
    ("verdict", "forwards", "backwards"),
    [
        (Verdict.BETTER, {"better-than", "not-worse-than"}, {"worse-than"}),
        (Verdict.WORSE, {"worse-than"}, {"better-than", "not-worse-than"}),
        (Verdict.BETTER_BELOW_MARGIN, {"better-than", *BOTH}, {"worse-than", *BOTH}),
        (Verdict.WORSE_BELOW_MARGIN, {"worse-than", *BOTH}, {"better-than", *BOTH}),
        (Verdict.EQUIVALENT, BOTH, BOTH),
        (Verdict.IDENTICAL, BOTH, BOTH),
        (Verdict.BLOCKED, set(), set()),
        (Verdict.NO_INFERENCE, set(), set()),
        (Verdict.INCONCLUSIVE, set(), set()),  # of six pairs
    ],
)
def test_what_each_verdict_supports(comparison, verdict, forwards, backwards):
    judged = replace(comparison, verdict=verdict)
    assert supported(judged) == forwards
    assert supported(judged, B, A) == backwards
    few, none = (
        msgspec.structs.replace(comparison.progress, looks=looks)
        for looks in (
            (msgspec.structs.replace(comparison.progress.looks[0], pairs=5),),
            (),
        )
    )
    for change in ({"progress": few}, {"progress": none}, {"capped_by": ("It did not train.",)}):
        assert supported(replace(judged, **change)) == supported(replace(judged, **change), B, A) == set()


def with_look(comparison, **fields):
    look = msgspec.structs.replace(comparison.progress.looks[0], **({"pairs": 15} | fields))
    progress = msgspec.structs.replace(comparison.progress, looks=(look,))
    limits = (look.low, look.high)
    return replace(comparison, verdict=Verdict.INCONCLUSIVE, progress=progress, limits_with_losses=limits)


@pytest.mark.parametrize(
    ("better", "left", "right", "low", "high"),
    [("higher", A, B, -1.9, 9.0), ("higher", B, A, -9.0, 1.9), ("lower", A, B, -9.0, 1.9), ("lower", B, A, -1.9, 9.0)],
)
def test_not_worse_looks_at_the_end_where_the_left_group_would_be_worse(comparison, better, left, right, low, high):
    away = math.copysign(0.1, low + high)  # from the margin, to which the limit lies 0.1 away
    for shift, holds_there in ((0.0, True), (away, True), (-away, False), (-2.0 * away, False)):
        judged = with_look(comparison, low=low + shift, high=high + shift)
        measures = judged.design.measures
        outcome = msgspec.structs.replace(measures.outcome, better=better)
        turned = msgspec.structs.replace(judged.design, measures=msgspec.structs.replace(measures, outcome=outcome))
        judged = replace(judged, question=msgspec.structs.replace(judged.question, design=turned))
        assert ("not-worse-than" in supported(judged, left, right)) is holds_there


def test_not_worse_needs_a_look_of_fifteen_pairs_no_cap_and_limits_that_hold_whatever_was_lost(comparison):
    good = with_look(comparison, low=1.0, high=9.0)
    baseline = Finding(kind="baseline", weight="caps equivalence", groups=(), sentence="Both are at chance.")
    assert supported(good) == {"not-worse-than"}
    for changed in (
        with_look(comparison, low=1.0, high=9.0, pairs=14),
        with_look(comparison, low=None, high=None),
        replace(good, findings=(baseline,)),
        replace(good, limits_with_losses=(None, None)),
        replace(good, limits_with_losses=(-2.1, 9.0)),
    ):
        assert supported(changed) == set()


def test_identical_with_runs_lost_in_one_group_only_supports_nothing(comparison):
    assert supported(replace(comparison, verdict=Verdict.IDENTICAL, lost=lost((6, 70.0, None)))) == set()


def test_every_condition_that_does_not_hold_is_named_with_what_it_needs(comparison):
    held = asked("shaped better-than simplified")
    require([held], [comparison])
    others = [asked(f"shaped {relation} simplified") for relation in ("worse-than", "equivalent-to")]
    with pytest.raises(ConditionNotMet, match=r"worse-than.*is BETTER; .*equivalent-to"):
        require([held, *others], [comparison])
    judged = replace(comparison, verdict=Verdict.INCONCLUSIVE)
    said = "INCONCLUSIVE of 6 pairs; showing a difference below the margin needs 15"
    for relation in BOTH:
        with pytest.raises(ConditionNotMet, match=said):
            require([asked(f"shaped {relation} simplified")], [judged])
    with pytest.raises(ConditionNotMet, match=r"is INCONCLUSIVE$"):
        require([held], [judged])
    equal = compared(design(2), pairs_of([70.0] * 2, [70.0] * 2), same_records=True)
    said = "shaped against simplified is IDENTICAL of 2 pairs; every requirement needs a look with at least 6 pairs"
    with pytest.raises(ConditionNotMet, match=said):
        require([asked("shaped equivalent-to simplified")], [equal])


def test_a_report_is_a_whole_document_whether_conditions_hold_or_not(tmp_path, capsys):
    run = str(write(tmp_path / "run", same_twice()))
    assert invoke(group, ["report", run, "--json", "--fail-unless", "a better-than b"], "esper-ab") == 12
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["comparisons"][0]["verdict"]) == (8, "IDENTICAL")
    assert invoke(group, ["report", run, "--format", "md", "--fail-unless", "a equivalent-to b"], "esper-ab") == 0
    assert capsys.readouterr().out.startswith("## a against b")
    assert [path.name for path in (tmp_path / "run").iterdir() if path.suffix in (".md", ".txt")] == ["summary.txt"]


@pytest.mark.parametrize(("count", "expected"), [(6, set()), (16, {"not-worse-than"})])
def test_a_stop_for_futility_supports_nothing_but_what_its_interval_shows(count, expected):
    """Of 6 pairs nothing; from 15 on non-inferiority, where the repeated interval lies above the margin."""
    bounds = (Boundary(open=1, alpha=0.05, nominal_p=(1e-9, 0.05)),)  # the first claims nothing
    stops = Futility(power=0.8, nominal_p=(0.09, 0.0))
    rule = design(20, looks=(count, 20), boundaries=bounds, futility=stops, margin=0.65)
    found = compared(rule, pairs_of(70.3 + SMALL[:count], [70.0] * count))
    assert (found.inconclusive, supported(found)) == ("futile", expected)
    with pytest.raises(ConditionNotMet, match="shaped against simplified is INCONCLUSIVE, stopped for futility"):
        require([asked("shaped better-than simplified")], [found])


def on_tasks(*differences, worst=""):
    """The comparisons A - B on one task per difference, and on their mean, with 16 seeds and a margin of 2."""
    tasks = tuple(f"task {place}" for place in range(len(differences))) if differences[1:] else ("",)
    seeds = tuple(map(str, range(16)))
    plan = make_external_plan((A, B), seeds, scales_of(tasks, 2.0, worst=worst), Rule(looks=(16,)))
    rows = []
    for task, difference in zip(tasks, differences, strict=True):
        for seed, noise in zip(seeds, SMALL, strict=True):
            rows += [
                Observation(group=A, task=task, replicate=seed, value=70.0 + difference + float(noise)),
                Observation(group=B, task=task, replicate=seed, value=70.0),
            ]
    return judge(plan, Observations(rows=tuple(rows), source="these runs", pair_column="seed")).comparisons


def is_met(left, relation, right, comparisons):
    try:
        require([Requirement(left=left, relation=relation, right=right)], comparisons)
    except ConditionNotMet:
        return False
    return True


@pytest.mark.parametrize(
    ("differences", "expected"),
    [
        ((6.0, 6.0), {"better-than", "not-worse-than"}),
        ((12.0, -6.0), set()),  # worse by three margins on one task, better on the mean
        ((6.0, -6.0), set()),  # equivalent on the mean
        ((12.0, 0.0), {"better-than", "not-worse-than"}),
        ((12.0, -1.0), {"better-than", "not-worse-than"}),  # worse by less than the margin
        ((0.0, 0.0), {"equivalent-to", "not-worse-than"}),
    ],
)
def test_of_several_tasks_a_size_is_asked_of_each_and_a_direction_of_the_mean(differences, expected):
    found = on_tasks(*differences)
    turned = on_tasks(*(-one for one in differences))
    assert {one for one in RELATIONS if is_met(A, one, B, found)} == expected
    assert {one for one in RELATIONS if is_met(B, one, A, turned)} == expected
    assert is_met(B, "worse-than", A, found) is ("better-than" in expected)


def test_a_failing_condition_names_the_task():
    found = on_tasks(12.0, -6.0)
    said = f'"{A} not-worse-than {B}" does not hold: on task 1, {A} against {B} is WORSE$'
    with pytest.raises(ConditionNotMet, match=said):
        require([Requirement(left=A, relation="not-worse-than", right=B)], found)
    said = f'"{A} better-than {B}" does not hold: on task 1, {A} against {B} is WORSE$'
    with pytest.raises(ConditionNotMet, match=said):
        require([Requirement(left=A, relation="better-than", right=B)], found)
    said = f"hold: {A} against {B} is EQUIVALENT on the mean over tasks; on task 1, {A} against {B} is WORSE$"
    with pytest.raises(ConditionNotMet, match=said):
        require([Requirement(left=A, relation="better-than", right=B)], on_tasks(6.0, -6.0))


def test_a_condition_about_size_says_what_failures_that_struck_no_run_could_cost():
    size, direction = (Requirement(left=B, relation=one, right=A) for one in ("not-worse-than", "worse-than"))
    (note,) = require([size], on_tasks(0.0))
    assert "failures in up to 17 % of a group's runs may be unseen with 16 pairs" in note
    assert "no worst outcome is declared (--worst)" in note
    assert "holds in 9 to 63 % of experiments with 15 pairs, and more often with fewer" in note
    (note,) = require([size], on_tasks(0.0, worst=0.0))  # its mean of 70 times 1 - 0.05^(1/16)
    assert note.endswith("at the worst outcome declared or seen (0.00), they worsen the mean of simplified by 11.95")
    assert require([size], on_tasks(0.0, worst=69.0)) == []  # they cost less than the margin
    assert require([direction], on_tasks(6.0)) == []
