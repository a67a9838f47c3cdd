"""--fail-unless: refused requirements, requirements fulfilled by each verdict, and the exit status."""

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
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.requirement import RELATIONS, Requirement, holds, parse_requirement, require
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.verdict import Verdict

GROUPS = ("shaped", "simplified", "wait")
COMPARED = (Contrast(a="shaped", b="simplified"), Contrast(a="shaped", b="wait"))


def parse(text):
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
def test_an_incomplete_requirement_is_refused(text):
    with pytest.raises(UsageError):
        parse(text)


def test_group_names_in_a_requirement_may_contain_spaces():
    requirement = parse_requirement(" my  group better-than b ", ("my group", "b"), (Contrast(a="b", b="my group"),))
    assert (requirement.left, requirement.relation, requirement.right) == ("my group", "better-than", "b")


@pytest.fixture(scope="module")
def comparison():
    """shaped - simplified, decided at its only look; interval +3.8 to +7.9."""
    return content(fold(planted_effect())).comparisons[0]


def find_supported(comparison, left_group=A, right_group=B):
    requirements = [Requirement(left=left_group, relation=relation, right=right_group) for relation in RELATIONS]
    return {requirement.relation for requirement in requirements if holds(requirement, comparison)}


BOTH = {"equivalent-to", "not-worse-than"}


@pytest.mark.parametrize(
    ("verdict", "forwards", "expected_backwards"),
    [
        (Verdict.BETTER, {"better-than", "not-worse-than"}, {"worse-than"}),
        (Verdict.WORSE, {"worse-than"}, {"better-than", "not-worse-than"}),
        (Verdict.BETTER_BELOW_MARGIN, {"better-than", *BOTH}, {"worse-than", *BOTH}),
        (Verdict.WORSE_BELOW_MARGIN, {"worse-than", *BOTH}, {"better-than", *BOTH}),
        (Verdict.EQUIVALENT, BOTH, BOTH),
        (Verdict.IDENTICAL, BOTH, BOTH),
        (Verdict.BLOCKED, set(), set()),
        (Verdict.NO_INFERENCE, set(), set()),
        (Verdict.INCONCLUSIVE, set(), set()),  # with six pairs
    ],
)
def test_each_verdict_fulfils_its_relations(comparison, verdict, forwards, expected_backwards):
    judged_comparison = replace(comparison, verdict=verdict)
    assert find_supported(judged_comparison) == forwards
    assert find_supported(judged_comparison, B, A) == expected_backwards
    progress_of_few, empty_progress = (
        msgspec.structs.replace(comparison.progress, looks=looks)
        for looks in (
            (msgspec.structs.replace(comparison.progress.looks[0], pairs=5),),
            (),
        )
    )
    few_pairs = {"pairs": comparison.pairs[:5], "progress": progress_of_few}
    no_look = few_pairs if verdict is Verdict.IDENTICAL else {"progress": empty_progress}  # which needs no look
    for change in (few_pairs, no_look, {"capped_by": ("It did not train.",)}):
        assert (
            find_supported(replace(judged_comparison, **change))
            == find_supported(replace(judged_comparison, **change), B, A)
            == set()
        )


def test_identical_pairs_need_no_look(comparison):
    progress = msgspec.structs.replace(comparison.progress, looks=())
    assert find_supported(replace(comparison, verdict=Verdict.IDENTICAL, progress=progress)) == BOTH


def with_look(comparison, **fields):
    look = msgspec.structs.replace(comparison.progress.looks[0], **({"pairs": 15} | fields))
    progress = msgspec.structs.replace(comparison.progress, looks=(look,))
    limits = (look.low, look.high)
    return replace(comparison, verdict=Verdict.INCONCLUSIVE, progress=progress, limits_with_losses=limits)


@pytest.mark.parametrize(
    ("better_direction", "left_group", "right_group", "low", "high"),
    [("higher", A, B, -1.9, 9.0), ("higher", B, A, -9.0, 1.9), ("lower", A, B, -9.0, 1.9), ("lower", B, A, -1.9, 9.0)],
)
def test_the_requirement_not_worse_than_checks_the_unfavourable_limit(
    comparison, better_direction, left_group, right_group, low, high
):
    shift_away = math.copysign(0.1, low + high)  # away from the margin, which is 0.1 beyond the limit
    for shift, expected in ((0.0, True), (shift_away, True), (-shift_away, False), (-2.0 * shift_away, False)):
        judged_comparison = with_look(comparison, low=low + shift, high=high + shift)
        measures = judged_comparison.design.measures
        outcome = msgspec.structs.replace(measures.outcome, better=better_direction)
        turned_design = msgspec.structs.replace(
            judged_comparison.design, measures=msgspec.structs.replace(measures, outcome=outcome)
        )
        judged_comparison = replace(
            judged_comparison, question=msgspec.structs.replace(judged_comparison.question, design=turned_design)
        )
        assert ("not-worse-than" in find_supported(judged_comparison, left_group, right_group)) is expected


def test_the_requirement_not_worse_than_needs_15_pairs(comparison):
    good_comparison = with_look(comparison, low=1.0, high=9.0)
    baseline = Finding(kind="baseline", weight="caps equivalence", groups=(), sentence="Both are at chance.")
    assert find_supported(good_comparison) == {"not-worse-than"}
    for changed_comparison in (
        with_look(comparison, low=1.0, high=9.0, pairs=14),
        with_look(comparison, low=None, high=None),
        replace(good_comparison, findings=(baseline,)),
        replace(good_comparison, limits_with_losses=(None, None)),
        replace(good_comparison, limits_with_losses=(-2.1, 9.0)),
    ):
        assert find_supported(changed_comparison) == set()


def test_identical_records_with_lost_runs_fulfil_no_requirement(comparison):
    assert find_supported(replace(comparison, verdict=Verdict.IDENTICAL, lost=lost((6, 70.0, None)))) == set()


def test_every_unmet_requirement_is_named_with_its_reason(comparison):
    met_requirement = parse("shaped better-than simplified")
    require([met_requirement], [comparison])
    failed_requirements = [parse(f"shaped {relation} simplified") for relation in ("worse-than", "equivalent-to")]
    with pytest.raises(ConditionNotMet, match=r"worse-than.*is BETTER; .*equivalent-to"):
        require([met_requirement, *failed_requirements], [comparison])
    judged_comparison = replace(comparison, verdict=Verdict.INCONCLUSIVE)
    reason = "INCONCLUSIVE of 6 pairs; showing a difference below the margin needs 15"
    for relation in BOTH:
        with pytest.raises(ConditionNotMet, match=reason):
            require([parse(f"shaped {relation} simplified")], [judged_comparison])
    with pytest.raises(ConditionNotMet, match=r"is INCONCLUSIVE$"):
        require([met_requirement], [judged_comparison])
    equal_comparison = compared(design(2), pairs_of([70.0] * 2, [70.0] * 2), same_records=True)
    reason = "shaped against simplified is IDENTICAL of 2 pairs; every requirement needs a look with at least 6 pairs"
    with pytest.raises(ConditionNotMet, match=reason):
        require([parse("shaped equivalent-to simplified")], [equal_comparison])


def test_an_unmet_requirement_does_not_shorten_the_report(tmp_path, capsys):
    run = str(write(tmp_path / "run", same_twice()))
    assert invoke(group, ["report", run, "--json", "--fail-unless", "a better-than b"], "esper-ab") == 12
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["comparisons"][0]["verdict"]) == (8, "IDENTICAL")
    assert invoke(group, ["report", run, "--format", "md", "--fail-unless", "a equivalent-to b"], "esper-ab") == 0
    assert capsys.readouterr().out.startswith("## a against b")
    assert [path.name for path in (tmp_path / "run").iterdir() if path.suffix in (".md", ".txt")] == ["summary.txt"]


@pytest.mark.parametrize(("count", "expected"), [(6, set()), (16, {"not-worse-than"})])
def test_a_stop_for_futility_fulfils_only_requirements_shown_by_its_interval(count, expected):
    """With 6 pairs nothing; with 15 or more non-inferiority, if the repeated interval lies above the margin."""
    bounds = (Boundary(open=1, alpha=0.05, nominal_p=(1e-9, 0.05)),)  # the first claims nothing
    stops = Futility(power=0.8, nominal_p=(0.09, 0.0))
    rule = design(20, looks=(count, 20), boundaries=bounds, futility=stops, margin=0.65)
    result = compared(rule, pairs_of(70.3 + SMALL[:count], [70.0] * count))
    assert (result.inconclusive, find_supported(result)) == ("futile", expected)
    with pytest.raises(ConditionNotMet, match="shaped against simplified is INCONCLUSIVE, stopped for futility"):
        require([parse("shaped better-than simplified")], [result])


def compare_on_tasks(*differences, worst_outcome=""):
    """Return the comparisons A - B on one task per difference, and on their mean, with 16 seeds and a margin of 2."""
    tasks = tuple(f"task {index}" for index in range(len(differences))) if differences[1:] else ("",)
    seeds = tuple(map(str, range(16)))
    plan = make_external_plan((A, B), seeds, scales_of(tasks, 2.0, worst=worst_outcome), Rule(looks=(16,)))
    rows = []
    for task, difference in zip(tasks, differences, strict=True):
        for seed, noise in zip(seeds, SMALL, strict=True):
            rows += [
                Observation(group=A, task=task, replicate=seed, value=70.0 + difference + float(noise)),
                Observation(group=B, task=task, replicate=seed, value=70.0),
            ]
    return judge(plan, Observations(rows=Runs.of(rows), source="these runs", pair_column="seed")).comparisons


def is_met(left_group, relation, right_group, comparisons):
    try:
        require([Requirement(left=left_group, relation=relation, right=right_group)], comparisons)
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
def test_a_requirement_about_size_must_hold_on_every_task(differences, expected):
    comparisons = compare_on_tasks(*differences)
    mirrored_comparisons = compare_on_tasks(*(-difference for difference in differences))
    assert {relation for relation in RELATIONS if is_met(A, relation, B, comparisons)} == expected
    assert {relation for relation in RELATIONS if is_met(B, relation, A, mirrored_comparisons)} == expected
    assert is_met(B, "worse-than", A, comparisons) is ("better-than" in expected)


def test_an_unmet_requirement_names_the_task():
    comparisons = compare_on_tasks(12.0, -6.0)
    message = f'"{A} not-worse-than {B}" does not hold: on task 1, {A} against {B} is WORSE$'
    with pytest.raises(ConditionNotMet, match=message):
        require([Requirement(left=A, relation="not-worse-than", right=B)], comparisons)
    message = f'"{A} better-than {B}" does not hold: on task 1, {A} against {B} is WORSE$'
    with pytest.raises(ConditionNotMet, match=message):
        require([Requirement(left=A, relation="better-than", right=B)], comparisons)
    message = f"hold: {A} against {B} is EQUIVALENT on the mean over tasks; on task 1, {A} against {B} is WORSE$"
    with pytest.raises(ConditionNotMet, match=message):
        require([Requirement(left=A, relation="better-than", right=B)], compare_on_tasks(6.0, -6.0))


def test_a_fulfilled_requirement_about_size_states_the_cost_of_unseen_failures():
    not_worse, worse = (
        Requirement(left=B, relation=relation, right=A) for relation in ("not-worse-than", "worse-than")
    )
    (note,) = require([not_worse], compare_on_tasks(0.0))
    assert "failures in up to 17 % of a group's runs may be unseen with 16 pairs" in note
    assert "no worst outcome is declared (--worst)" in note
    assert "holds in 9 to 63 % of experiments with 15 pairs, and more often with fewer" in note
    (note,) = require([not_worse], compare_on_tasks(0.0, worst_outcome=0.0))  # its mean of 70 times 1 - 0.05^(1/16)
    assert note.endswith("at the worst outcome declared or seen (0.00), they worsen the mean of simplified by 11.95")
    assert require([not_worse], compare_on_tasks(0.0, worst_outcome=69.0)) == []  # they cost less than the margin
    assert require([worse], compare_on_tasks(6.0)) == []
