"""A claim stands nowhere without its caveats: the screen, `status`, verdict.json, report and Python say the same."""

import html
import json
import re
from dataclasses import replace

import pytest
from support.golden import SEED, promised_and_seen
from support.golden_json import stored
from support.journals import write
from support.synthetic import Shape, Synthetic

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


# With up to three groups, all of which are compared: the report folds more, and other comparisons have other journals.
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


def content_of(name, directory):
    """What a report holds, of an experiment with these groups whose comparisons are those of the golden."""
    planned, seen = promised_and_seen(stored(name))
    made = Synthetic(
        groups={group: Shape() for group in planned.groups},
        replicates=len(planned.replicates),
        episodes=2,
        n_envs=2,
        eval_episodes=2,
    )
    found = content(load(write(directory, made.events())).history)
    judged = judge(planned, seen, rng_seed=SEED)
    return replace(found, analysis=replace(found.analysis, comparisons=judged.comparisons))


def marked(text):
    """Return the caveats of a text of 80 columns, without their line breaks."""
    return {" ".join(found.split()) for found in _MARK.findall(text)}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_five_outlets_say_the_same_caveats(name, tmp_path):
    found = content_of(name, tmp_path)
    (tmp_path / VERDICT).write_bytes(render_verdict(found))
    answers = json.loads((tmp_path / VERDICT).read_text())["comparisons"]
    told = {warning for one in answers for warning in one["warnings"]}
    assert told == {warning for one in found.comparisons for warning in one.warnings}
    document = experiment_report(found)
    assert marked(render_brief(found, "report.html")) == told  # the last lines of `launch`
    assert marked(render_text(document).partition("Scope:")[0]) == told
    assert marked(Results(tmp_path, found, "").verdict) == told
    page = " ".join(html.unescape(render_page(document)).split())
    assert [warning for warning in told if warning not in page] == []
    status = status_text(tmp_path)
    assert {line.removeprefix("  ! ") for line in status.splitlines() if line.startswith("  ! ")} == told
    assert all(f"{one.verdict}: {one.headline}" in status for one in found.comparisons)


def test_claims_with_caveats_are_among_them(tmp_path):
    found = [one for name in EXPERIMENTS for one in content_of(name, tmp_path / name).comparisons]
    assert sum(bool(one.warnings) and str(one.verdict).startswith(("BETTER", "WORSE")) for one in found) > 2
