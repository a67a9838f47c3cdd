"""Reports on many kinds of journals: their text, and a page that is safe and complete."""

from __future__ import annotations

import functools
import html.parser
import json
import re
from pathlib import Path

import pytest
from support.goldens import report_texts
from support.journals.ready_journals import (
    failed_run,
    one_replicate,
    planted_effect,
    same_twice,
    three_groups,
    without_evaluations,
)
from support.journals.synthetic import Shape, Synthetic

from esper_ab.journal.events import Incident, LookTaken, RunEvaluated, RunStarted
from esper_ab.journal.fold import fold
from esper_ab.report.content import Content, content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.markdown import escaped, render_markdown
from esper_ab.report.page import render_page
from esper_ab.report.text import render_text
from esper_ab.report.verdict_json import render_verdict
from esper_ab.report.verdicts import verdicts as verdicts_of


class Page(html.parser.HTMLParser):
    """Tags and attributes of a page, and whether every element that was opened was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def six_groups(replicates=20, episodes=12):
    shapes = {f"group-{i}": Shape(accuracy=60.0 + 3 * i, params=300 * i) for i in range(5)}
    shapes["wait"] = Shape(accuracy=33.0, controller="wait", params=0)
    return Synthetic(groups=shapes, replicates=replicates, episodes=episodes, n_envs=2).events()


def lost_run():
    """Return a journal in which two runs of simplified were given up."""
    lost_runs = ("simplified/1", "simplified/4")
    events = [
        event
        for event in Synthetic(replicates=10).events()
        if not (isinstance(event, RunEvaluated) and event.record.run.name in lost_runs)
    ]
    entries = [Incident(category="dropped_pair", run_name=run, episode=None, detail="died twice") for run in lost_runs]
    return [*events[:-1], *entries, events[-1]]


def runs_left_out():
    """Return a journal decided at the first look, so that the last four replicates were left out."""
    groups = {"a": Shape(accuracy=80.0), "b": Shape(accuracy=60.0)}
    whole = Synthetic(groups=groups, replicates=10, settings={"looks": (6, 10)}).events()
    contrast = whole[0].plan.design.comparisons[0]
    cut_index = next(i for i, event in enumerate(whole) if isinstance(event, RunStarted) and event.run.replicate == 6)
    look = LookTaken(replicates=6, decided=(contrast,), leaving=("a", "b"))
    return [*whole[:cut_index], look, whole[-1]]


JOURNALS = {
    "planted effect": planted_effect,
    "a/a": same_twice,
    "one seed": one_replicate,
    "three groups": three_groups,
    "failed run": failed_run,
    "no evaluation": lambda: without_evaluations(planted_effect()),
    "only the plan": lambda: planted_effect()[:1],
    "first episodes": lambda: planted_effect()[:9],
    "three groups, twenty seeds": lambda: Synthetic(
        groups={"a": Shape(), "b": Shape(mode="sparse"), "c": Shape(accuracy=60.0)},
        replicates=20,
        episodes=3,
        n_envs=1,
        settings={"control": "a"},
    ).events(),
    "six groups": lambda: six_groups(replicates=6, episodes=4),
    "lost runs": lost_run,
    "left out": runs_left_out,
    "no maximum": lambda: Synthetic(settings={"open_ended": True}).events(),
    "last tenth, unpaired": lambda: Synthetic(
        outcome_over="last-tenth", settings={"unpaired": True, "order": "shuffled"}
    ).events(),
}


@functools.cache
def get_content(name: str) -> Content:
    """Return the content of a report, computed once per journal."""
    return content(fold(JOURNALS[name]()))


@functools.cache
def get_page(name: str) -> Page:
    """Return the page, drawn once per journal, because drawing takes a second."""
    return Page(render_page(experiment_report(get_content(name))))


def get_whole_text(name: str) -> str:
    return render_text(experiment_report(get_content(name)), in_full=True)


@pytest.mark.parametrize("name", report_texts.REPORTS)
def test_the_text_equals_the_golden_file(name):
    """No test writes the golden file: read the difference, then decide."""
    assert report_texts.report_text(name) == report_texts.stored_file(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", JOURNALS)
def test_every_journal_makes_a_complete_page_without_external_resources(name):
    page = get_page(name)
    assert page.open == []
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert [tag for tag, _ in page.tags].count("script") == 1
    for tag, attrs in page.tags:
        assert tag not in ("img", "iframe", "object", "image")
        for key in ("src", "href", "xlink:href"):
            assert attrs.get(key, "#").startswith(("#", "data:"))
        assert not any(key.startswith("on") for key in attrs)
    labels = [attrs.get("aria-label") for tag, attrs in page.tags if attrs.get("role") == "img"]
    assert len(labels) == sum(tag == "figure" for tag, _ in page.tags)
    assert all(labels)


@pytest.mark.parametrize(
    ("name", "pattern", "page_words"),
    [
        ("failed run", r"^INCOMPLETE[\s\S]*Scope: ", "INCOMPLETE · FAILED"),
        ("first episodes", r"^INCOMPLETE[\s\S]*Scope: ", "INCOMPLETE · IN PROGRESS"),
        (
            "planted effect",
            r"Cross-evaluation[\s\S]*not comparable between modes[\s\S]*Does the reward",
            "not comparable between modes",
        ),
        ("lost runs", r"runs lost[\s\S]*died twice", "died twice"),
        (
            "left out",
            r"\A(?![\s\S]*INCOMPLETE)[\s\S]*BETTER[\s\S]*runs left out after a decision",
            "runs left out after a decision",
        ),
    ],
)
def test_the_text_and_the_page_contain_the_essential_facts(name, pattern, page_words):
    assert re.search(pattern, get_whole_text(name), flags=re.MULTILINE)
    assert page_words in " ".join(get_page(name).words)


LONG = {"last tenth, unpaired", "three groups", "three groups, twenty seeds", "six groups", "lost runs"}


@pytest.mark.parametrize("name", JOURNALS)
def test_lines_of_a_report_fit_80_columns(name):
    *lines, last_line = render_text(experiment_report(get_content(name))).splitlines()
    assert len(lines) < 24 or name in LONG
    assert last_line == "The rest: esper-ab report EXPERIMENT --verbose"
    long_lines = [line for line in (*lines, *get_whole_text(name).splitlines()) if len(line) > 80]
    assert [line for line in long_lines if "esper-ab " not in line and "git " not in line] == []


@pytest.mark.parametrize("name", ["planted effect", "three groups", "six groups"])
def test_a_report_has_one_line_about_its_scope(name):
    text = render_text(experiment_report(get_content(name)))
    assert text.count("Scope: task digits, ") == text.count(" environments.") == 1
    assert "Conditional on" not in text


NASTY = "<script>alert(1)</script>&$x^2$\"'[red]"


def report_on_group(group):
    """Return the report on an experiment with a group of this name."""
    groups = {group: Shape(accuracy=74.0), "b": Shape(mode="simplified")}
    return experiment_report(content(fold(Synthetic(groups=groups).events())))


@pytest.mark.parametrize("name", [NASTY, "lr=0.00125"])
def test_names_of_groups_cannot_inject_markup(name):
    page = Page(render_page(report_on_group(name)))
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert sum(word.strip() == name for word in page.words) > 10
    assert page.open == []


def test_names_of_groups_cannot_inject_markdown():
    text = render_markdown(report_on_group("|a|<b>*c*`d`@everybody\nhttp://x"))
    assert "<b>" not in text
    assert "@" not in text
    assert "://" not in text
    for line in text.splitlines():
        if line.startswith("| seed |"):
            assert len(re.split(r"(?<!\\)\|", line)) == 6


@pytest.mark.parametrize(
    ("groups", "replicates", "episodes"),
    [
        (2, 2, 1500),
        *(pytest.param(*numbers, marks=pytest.mark.slow) for numbers in ((6, 20, 40), (2, 400, 2))),
    ],
)
def test_the_page_of_a_large_experiment_stays_below_a_megabyte(groups, replicates, episodes):
    shapes = {f"group-{i}": Shape(accuracy=60.0 + i) for i in range(groups)}
    events = Synthetic(groups=shapes, replicates=replicates, episodes=episodes, n_envs=1).events()
    assert len(render_page(experiment_report(content(fold(events)))).encode()) < 1_000_000


def test_figures_draw_at_most_100_of_many_runs():
    def count_marks(replicates):
        shapes = {"a": Shape(accuracy=60.0), "b": Shape(accuracy=61.0)}
        events = Synthetic(groups=shapes, replicates=replicates, episodes=1, n_envs=1).events()
        text = render_page(experiment_report(content(fold(events))))
        return len(set(re.findall(r'data-mark="0-\d+"', text))), "Drawn one by one: 100 of 130 seeds" in text

    assert count_marks(20) == (20, False)
    assert count_marks(130) == (100, True)


@pytest.mark.parametrize("name", JOURNALS)
def test_every_comparison_is_in_every_form_of_the_report(name):
    report_content = get_content(name)
    report = experiment_report(report_content)
    renderings = " ".join(get_whole_text(name).split()), render_markdown(report), " ".join(get_page(name).words)
    assert "winner" not in " ".join(renderings).lower()
    document = json.loads(render_verdict(report_content))
    assert [item["verdict"] for item in document["comparisons"]] == [
        str(item.verdict) for item in report_content.comparisons
    ]
    cards = verdicts_of(report_content).cards
    if len(report_content.comparisons) <= 3:
        assert [card.headline for card in cards] == [item.headline for item in report_content.comparisons]
    sentences = [item.sentence.partition(" Conditional on ")[0] for item in report_content.comparisons]
    for rendering, escape in zip(renderings, (str, escaped, str), strict=True):
        compact_text = "".join(rendering.split())  # an explained word has a space beside it on the page
        expected_texts = (*(card.headline for card in cards), *sentences)
        assert [text for text in expected_texts if "".join(escape(text).split()) not in compact_text] == []


def test_a_caveat_shared_by_all_comparisons_is_printed_once():
    report_content = get_content("six groups")
    shared_caveats = set.intersection(*(set(item.caveats) for item in report_content.comparisons))
    assert shared_caveats
    text = " ".join(get_whole_text("six groups").split())
    for caveat in shared_caveats:
        assert text.count(caveat) == 1


def test_every_key_of_the_verdict_is_documented():
    page = (Path(__file__).resolve().parents[4] / "docs" / "verdict.md").read_text(encoding="utf-8")
    documented_keys = set(re.findall(r"`([a-z_0-9]+)`", page))
    document = json.loads(render_verdict(get_content("left out")))
    assert set(document) <= documented_keys
    samples = (document[key][0] for key in ("comparisons", "runs", "conduct"))
    for item in (*samples, document["design"]):
        assert set(item) <= documented_keys
