import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.journals.ready_journals import with_lost_runs, write
from support.journals.synthetic import Shape, Synthetic
from support.outcomes.csv_outcomes import scales

from esper_ab.analysis.observe import pairs_of
from esper_ab.design.design import Contrast
from esper_ab.journal.events import ExperimentContinued, RunStarted
from esper_ab.journal.load import load
from esper_ab.readers.external_plan import make_external_plan
from esper_ab.readers.joint import judge_directory, read_experiments
from esper_ab.readers.joint_directory import Joint, JointPart
from esper_ab.report.content import content
from esper_ab.report.joint import joint_report, render_joint_brief, render_joint_json
from esper_ab.report.page import render_page
from esper_ab.report.text import render_text
from esper_ab.settings.parts import share_of
from esper_ab.stats.pair import Pair, Pairs
from esper_ab.verdict.analysis_plan import Rule, make_plan
from esper_ab.verdict.judge import judge
from esper_ab.verdict.looks import progress_after
from esper_ab.verdict.scale import MEAN

GROUPS = {"shaped": Shape(accuracy=90.0), "simplified": Shape(accuracy=60.0, mode="simplified")}
TASKS = ("digits", "mixture")
PLAN = make_external_plan(tuple(GROUPS), tuple("012345"), scales(tasks=TASKS), Rule())
JOINT = Joint(
    parts=tuple(JointPart(name=task, folder=task, digest="0" * 64) for task in TASKS),
    scores=dict.fromkeys(TASKS, (0.0, 100.0)),
)


WHOLE = Synthetic(groups=GROUPS, replicates=6).events()


def written(place, **parts):
    """A directory of both parts, whole if no other events are given for one."""
    for task in TASKS:
        write(place / task, parts.get(task, WHOLE))
    return place


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return written(tmp_path_factory.mktemp("joint"))


def _verdicts(result):
    return {comparison.question.task: str(comparison.verdict) for comparison in result.judged.comparisons}


def test_a_joint_experiment_ignores_runs_beyond_its_plan(tmp_path):
    extended_events = Synthetic(groups=GROUPS, replicates=6, extended_by=2).events()
    result = judge_directory(written(tmp_path, mixture=extended_events), JOINT, PLAN)
    assert [(part.runs, part.of_runs) for part in result.parts] == [(12, 12)] * 2
    assert result.complete
    assert any("seed 6 and 7" in departure or "6, 7" in departure for departure in result.judged.departures)


def test_a_joint_experiment_reports_a_lost_seed(tmp_path):
    events_with_loss = with_lost_runs(WHOLE, {f"{name}/5": "dropped_pair" for name in GROUPS})
    result = judge_directory(written(tmp_path, mixture=events_with_loss), JOINT, PLAN)
    assert not result.complete
    assert "INCOMPLETE. 22 of 24 runs are evaluated; the seeds of the others were given up." in " ".join(
        render_text(joint_report(result)).split()
    )


def test_a_blocked_part_of_a_joint_experiment_also_blocks_the_mean(tmp_path):
    """Half of one part was recorded by other code."""
    half_index = [place for place, event in enumerate(WHOLE) if isinstance(event, RunStarted)][6]
    continuation = ExperimentContinued(versions={}, machine={}, code={"commit": "other", "dirty": "no"})
    result = judge_directory(
        written(tmp_path, digits=[*WHOLE[:half_index], continuation, *WHOLE[half_index:]]), JOINT, PLAN
    )
    assert {part for part, finding in result.findings if finding.weight == "blocks"} == {"digits"}
    assert _verdicts(result) == {"digits": "BLOCKED", "mixture": "BETTER", MEAN: "BLOCKED"}
    sentence = next(comparison.sentence for comparison in result.judged.comparisons if comparison.question.task == MEAN)
    assert "digits: " in sentence


def test_parts_with_the_same_computation_are_identical(tmp_path):
    twins = {name: Shape(accuracy=80.0, stream="one") for name in ("a", "b")}
    events = Synthetic(groups=twins, replicates=6).events()
    plan = make_external_plan(tuple(twins), tuple("012345"), scales(tasks=TASKS), Rule())
    result = judge_directory(written(tmp_path, digits=events, mixture=events), JOINT, plan)
    assert set(_verdicts(result).values()) == {"IDENTICAL"}
    assert all("are the same computation" in comparison.headline for comparison in result.judged.comparisons)


def test_every_form_of_a_joint_report_has_the_same_answer(directory):
    result = judge_directory(directory, JOINT, PLAN)
    document = msgspec.json.decode(render_joint_json(result))
    assert [comparison["task"] for comparison in document["judged"]["comparisons"]] == [*TASKS, MEAN]
    brief_text = render_joint_brief(result, directory / "report.html")
    assert brief_text.startswith("mean over the named tasks")
    page = render_page(joint_report(result))
    for comparison in result.judged.comparisons:
        assert comparison.headline in page
        assert " ".join(comparison.headline.split()) in " ".join(render_text(joint_report(result)).split())
    assert render_page(joint_report(judge_directory(directory, JOINT, PLAN))) == page


def test_outcomes_read_from_experiment_directories_equal_those_of_their_journals(directory):
    folders = [(task, directory / task) for task in TASKS]
    observations = read_experiments(folders, scales(tasks=TASKS))
    pairs = pairs_of(load(folders[0][1]).history, Contrast(a="shaped", b="simplified"))
    values_of_part = {(row.group, row.replicate): row.value for row in observations.rows if row.task == "digits"}
    assert values_of_part == {
        key: end
        for pair in pairs
        for key, end in ((("shaped", str(pair.replicate)), pair.a), (("simplified", str(pair.replicate)), pair.b))
    }


def test_cancelled_partners_of_failed_runs_do_not_count_as_failures(tmp_path):
    """The judge of a directory says what its own report says."""
    twins = {"left": Shape(accuracy=70.0), "right": Shape(accuracy=70.05)}
    events = Synthetic(groups=twins, replicates=20, episodes=2, settings={"looks": (20,)}).events()
    category = {"left": "dropped_pair", "right": "cancelled"}
    lost_runs = {f"{group}/{replicate}": category[group] for group in twins for replicate in (3, 7)}
    folder = write(tmp_path / "twins", with_lost_runs(events, lost_runs))
    history = load(folder).history
    reported_comparison = content(history).comparisons[0]
    seeds = tuple(map(str, range(20)))
    rule = Rule(looks=(20,))
    plan = make_external_plan(tuple(twins), seeds, scales(history.design.margin), rule)
    judged_comparison = judge(plan, read_experiments([("", folder)], plan.scales)).comparisons[0]
    assert (
        (judged_comparison.lost.a, judged_comparison.lost.b)
        == (reported_comparison.lost.a, reported_comparison.lost.b)
        == (2, 0)
    )
    assert judged_comparison.lost.cancelled == reported_comparison.lost.cancelled
    assert judged_comparison.verdict == reported_comparison.verdict


@settings(max_examples=100, deadline=None)
@given(
    effects=st.lists(st.lists(st.floats(-6.0, 6.0), min_size=4, max_size=4), min_size=2, max_size=3),
    groups=st.sampled_from(("ab", "abc", "abcd")),
    seed=st.integers(0, 2**20),
    has_control=st.booleans(),
)
@example(effects=[[0.0, 60.0, 1.3, 0.0], [0.0] * 4], groups="abc", seed=0, has_control=False)
def test_a_part_judged_alone_makes_no_additional_claims(effects, groups, seed, has_control):
    """The law behind the share of alpha that a part's own report holds, whatever the mean over all parts does."""
    names = tuple(f"task{index}" for index in range(len(effects)))
    control = groups[0] if has_control else ""
    share = share_of(0.05, len(names), len(groups), controlled=has_control)
    claimed_together = _decided(names, groups, effects, seed, Rule(looks=(9,), control=control))
    for name, task_effects in zip(names, effects, strict=True):
        rule = Rule(looks=(9,), control=control, alpha=share)
        separate_claims = _decided((name,), groups, [task_effects], seed, rule)
        assert separate_claims.items() <= claimed_together.items(), name


def _decided(names, groups, effects, seed, rule):
    """What is claimed on each task, where nothing is known of the mean."""
    task_scales = scales(tasks=names)
    plan = make_plan(groups, tuple("012345678"), task_scales, rule)
    design = plan.design
    values = {
        (name, group): 70.0 + effect + np.random.default_rng((seed, ord(group))).standard_normal(9)
        for name, task_effects in zip(names, effects, strict=True)
        for group, effect in zip(groups, task_effects, strict=False)
    }
    pairs = {
        contrast: _pairs(values[contrast.task, contrast.a], values[contrast.task, contrast.b])
        for contrast in design.comparisons
        if contrast.task != MEAN
    }
    progress = progress_after(design, pairs, 9, {contrast: plan.design_of(contrast) for contrast in design.comparisons})
    return {
        (contrast.a, contrast.b, contrast.task or names[0]): (course.decision, course.direction)
        for contrast, course in progress.items()
        if course.claimed
    }


def _pairs(a, b):
    return Pairs.of(
        Pair(replicate=place, a=float(value_a), b=float(value_b), position_a=0, position_b=1)
        for place, (value_a, value_b) in enumerate(zip(a, b, strict=True))
    )
