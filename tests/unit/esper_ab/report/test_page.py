"""The page: it allows only its own script, and every point of a figure names its run."""

import base64
import hashlib
import html
import re

import pytest
from support.journals.ready_journals import planted_effect

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.page import render_page
from esper_ab.report.terms import Explained


@pytest.fixture(scope="module")
def report_content():
    return content(fold(planted_effect()))


@pytest.fixture(scope="module")
def text(report_content):
    return render_page(experiment_report(report_content))


def test_the_security_policy_of_the_page_allows_only_the_embedded_script(text):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    allowed_sources = dict(part.split(" ", 1) for part in html.unescape(policy).split("; "))
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert allowed_sources["script-src"] == f"'sha256-{digest}'"
    assert allowed_sources["default-src"] == "'none'"


def test_every_point_of_a_figure_names_its_run(report_content, text):
    for index, group in enumerate(report_content.groups):
        for run in report_content.of_group(group):
            assert f'data-mark="{index}-{run.run.replicate}"><title>{group}, seed {run.run.replicate}: ' in text


def test_the_answer_and_the_next_step_precede_every_fold_of_the_page(report_content, text):
    order = (
        report_content.comparisons[0].headline,
        "figure-effects",
        "figure-curves",
        "What it rests on",
        "What to do next",
    )
    positions = [text.index(part) for part in (*order, "<details")]
    assert positions == sorted(positions)


def test_a_scrollable_element_has_an_accessible_name(text):
    scrolling_tags = re.findall(r'<div [^>]*tabindex="0"[^>]*>', text)
    assert all(re.search(r'role="(region|img)" aria-label="[^"]+"', tag) for tag in scrolling_tags)
    assert '<div class="scroll" tabindex="0" role="region" aria-label="Outcomes by seed">' in scrolling_tags


def test_terms_are_explained_at_their_first_use():
    explain = Explained()
    html_text = explain("A <look>, two looks, and an overlook of the pair")
    assert html_text.count("<abbr") == 2
    assert "&lt;<abbr" in html_text
    assert sorted(explain.met) == ["look", "pair"]
    explain.begin()
    assert "<abbr" in explain("looks")
