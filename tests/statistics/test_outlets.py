"""Every output of a verdict has its caveats: the screen, `status`, verdict.json, the report and Python."""

import html
import json
import re
from dataclasses import replace
from functools import cache

import pytest
from support.goldens.golden_experiments import SEED, plan_and_observations
from support.goldens.golden_json import stored
from support.journals.ready_journals import write
from support.journals.synthetic import Shape, Synthetic

from esper_ab.api.results import Results
from esper_ab.contracts.answer_files import VERDICT
from esper_ab.journal.load import load
from esper_ab.readers.status_text import status_text
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report, render_brief
from esper_ab.report.page import render_page
from esper_ab.report.text import render_text
from esper_ab.report.verdict_json import render_verdict
from esper_ab.verdict.judge import judge

_MARK = re.compile(r"(?:\A|\n) *! (.*(?:\n {2,}(?!!)\S.*)*)")  # a caveat, with its further lines


# Experiments of at most three groups that are all compared; the report folds longer lists.
EXPERIMENTS = (
    "better_below_margin",
    "constant_difference",
    "equivalent",
    "growth_three_groups",
    "looks_alpha_passed_on",
    "looks_early_stop",
    "looks_futility",
    "lost_in_both",
    "one_replicate",
    "places_aliased",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a function that makes, once, the directory of a golden's experiment and the content of its report."""

    @cache
    def directory_and_content(name):
        directory = tmp_path_factory.mktemp("experiment")
        return directory, make_content(name, directory)

    return directory_and_content


def make_content(name, directory):
    """Return the content of a report on a synthetic experiment with the golden's comparisons."""
    analysis_plan, observations = plan_and_observations(stored(name))
    synthetic_experiment = Synthetic(
        groups={group: Shape() for group in analysis_plan.groups},
        replicates=len(analysis_plan.replicates),
        episodes=2,
        n_envs=2,
        eval_episodes=2,
    )
    report_content = content(load(write(directory, synthetic_experiment.events())).history)
    judged_answer = judge(analysis_plan, observations, rng_seed=SEED)
    return replace(report_content, analysis=replace(report_content.analysis, comparisons=judged_answer.comparisons))


def find_caveats(text):
    """Return the caveats of a text of 80 columns, without their line breaks."""
    return {" ".join(caveat.split()) for caveat in _MARK.findall(text)}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_all_outputs_of_a_report_have_the_same_caveats(name, made):
    directory, report_content = made(name)
    (directory / VERDICT).write_bytes(render_verdict(report_content))
    answers = json.loads((directory / VERDICT).read_text())["comparisons"]
    warnings = {warning for answer in answers for warning in answer["warnings"]}
    assert warnings == {warning for comparison in report_content.comparisons for warning in comparison.warnings}
    document = experiment_report(report_content)
    assert find_caveats(render_brief(report_content, "report.html")) == warnings  # the last lines of `launch`
    assert find_caveats(render_text(document).partition("Scope:")[0]) == warnings
    assert find_caveats(Results(directory, report_content, "").verdict) == warnings
    page = " ".join(html.unescape(render_page(document)).split())
    assert [warning for warning in warnings if warning not in page] == []
    status = status_text(directory)
    assert {line.removeprefix("  ! ") for line in status.splitlines() if line.startswith("  ! ")} == warnings
    assert all(f"{item.verdict}: {item.headline}" in status for item in report_content.comparisons)


def test_the_examples_include_claims_with_caveats(made):
    comparisons = [comparison for name in EXPERIMENTS for comparison in made(name)[1].comparisons]
    claims = [comparison for comparison in comparisons if str(comparison.verdict).startswith(("BETTER", "WORSE"))]
    assert sum(bool(claim.warnings) for claim in claims) > 2
