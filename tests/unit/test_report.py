"""Reports: what each kind of journal may claim, the same bytes every time, and a page that harms nobody."""

from __future__ import annotations

import functools
import html.parser
import json
import re
from pathlib import Path

import matplotlib as mpl
import pytest
from support.journals import (
    Shape,
    Synthetic,
    failed_run,
    one_replicate,
    planted_effect,
    same_twice,
    three_groups,
    without_evaluations,
    write,
)

from esper_ab.errors import JournalError, UsageError
from esper_ab.journal.events import RunEvaluated
from esper_ab.journal.file import JOURNAL_NAME
from esper_ab.journal.fold import fold
from esper_ab.report.build import build_report, render_report
from esper_ab.report.content import content
from esper_ab.report.page import render_page
from esper_ab.report.text import render_text
from esper_ab.report.verdict_json import render_verdict

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


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


def page(events) -> Page:
    return Page(render_page(content(fold(events))))


JOURNALS = {
    "planted effect": planted_effect,
    "a/a": same_twice,
    "one replicate": one_replicate,
    "three groups": three_groups,
    "failed run": failed_run,
    "no evaluation": lambda: without_evaluations(planted_effect()),
    "only the plan": lambda: planted_effect()[:1],
    "first episodes": lambda: planted_effect()[:9],
}


@functools.cache
def made_page(name: str) -> Page:
    """Drawing takes a second: once per journal."""
    return page(JOURNALS[name]())


def verdicts(events) -> list[str]:
    return [item.verdict for item in content(fold(events)).comparisons]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (planted_effect, ["BETTER"]),
        (same_twice, ["IDENTICAL"]),
        (one_replicate, ["NO INFERENCE"]),
        (three_groups, ["BETTER", "BETTER", "BETTER"]),
        (failed_run, ["INCONCLUSIVE"]),
    ],
)
def test_what_a_journal_may_claim(events, expected):
    assert verdicts(events()) == expected


def test_no_effect_is_not_claimed():
    groups = {"left": Shape(), "right": Shape()}
    assert verdicts(Synthetic(groups=groups).events()) == ["INCONCLUSIVE"]


def test_swapping_groups_turns_better_into_worse():
    groups = {"simplified": Shape(accuracy=69.0), "shaped": Shape(accuracy=74.0)}
    assert verdicts(Synthetic(groups=groups).events()) == ["WORSE"]


@pytest.mark.parametrize("name", ["planted_effect", "failed_run"])
def test_text_is_as_it_was(name):
    """The golden file is never written by a test: look at the difference, then decide."""
    text = render_text(content(fold({"planted_effect": planted_effect, "failed_run": failed_run}[name]())))
    assert text == (GOLDEN / f"report_{name}.txt").read_text(encoding="utf-8")


def test_verdict_json_says_the_same_as_the_text():
    found = content(fold(planted_effect()))
    document = json.loads(render_verdict(found))
    assert document["complete"] is True
    only = document["comparisons"][0]
    assert only["verdict"] == "BETTER"
    assert only["sentence"] == found.comparisons[0].sentence
    assert only["difference"]["mean"] == found.comparisons[0].difference.mean
    assert len(only["pairs"]) == 6
    assert {run["run"]["run"] for run in document["runs"]} == set(found.outcomes)


@pytest.mark.parametrize("name", JOURNALS)
def test_every_journal_makes_a_whole_page_without_anything_from_outside(name):
    made = made_page(name)
    assert made.open == []
    ids = [attrs["id"] for _, attrs in made.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for tag, attrs in made.tags:
        assert tag not in ("script", "img", "iframe", "object", "image")
        for key in ("src", "href", "xlink:href"):
            assert attrs.get(key, "#").startswith(("#", "data:"))
    labels = [attrs.get("aria-label") for tag, attrs in made.tags if attrs.get("role") == "img"]
    assert len(labels) == sum(tag == "figure" for tag, _ in made.tags)
    assert all(labels)


@pytest.mark.parametrize(("name", "word"), [("failed run", "FAILED"), ("first episodes", "IN PROGRESS")])
def test_an_unfinished_journal_says_so_first(name, word):
    text = render_text(content(fold(JOURNALS[name]())))
    assert text.index("INCOMPLETE") < text.index("VERDICT")
    assert f"INCOMPLETE · {word}" in " ".join(made_page(name).words)


def test_a_finished_journal_does_not():
    assert "INCOMPLETE" not in render_text(content(fold(planted_effect())))


def test_a_lost_evaluation_is_counted_and_never_imputed():
    lost = next(event for event in planted_effect() if isinstance(event, RunEvaluated))
    found = content(fold([event for event in planted_effect() if event != lost]))
    assert found.state.word == "incomplete"
    assert len(found.comparisons[0].pairs) == 5
    assert found.comparisons[0].verdict == "INCONCLUSIVE"


@pytest.mark.parametrize("name", ["planted effect", "three groups"])
def test_rewards_are_marked_wherever_they_are_shown(name):
    text = render_text(content(fold(JOURNALS[name]())))
    assert "not comparable between modes" in text[text.index("Cross-evaluation") : text.index("PPO diagnostics")]
    assert "not comparable between modes" in " ".join(made_page(name).words)


@pytest.mark.parametrize("name", JOURNALS)
def test_nobody_wins(name):
    found = render_text(content(fold(JOURNALS[name]()))) + " ".join(made_page(name).words)
    assert "winner" not in found.lower()


NASTY = "<script>alert(1)</script>&$x^2$\"'[red]"


def test_names_cannot_inject_markup():
    groups = {NASTY: Shape(accuracy=74.0), "b": Shape(mode="simplified")}
    made = page(Synthetic(groups=groups).events())
    assert not any(tag == "script" for tag, _ in made.tags)
    assert NASTY in "".join(made.words)
    assert made.open == []


@pytest.mark.parametrize(("groups", "replicates", "episodes"), [(8, 12, 40), (2, 2, 1500)])
def test_a_page_stays_small(groups, replicates, episodes):
    shapes = {f"group-{i}": Shape(accuracy=60.0 + i) for i in range(groups)}
    events = Synthetic(groups=shapes, replicates=replicates, episodes=episodes, n_envs=1).events()
    assert len(render_page(content(fold(events))).encode()) < 400_000


def test_the_same_journal_gives_the_same_bytes(tmp_path):
    run_dir = write(tmp_path / "run", planted_effect())
    first = build_report(run_dir)
    before = [path.read_bytes() for path in (first.summary, first.verdict, first.page)]
    with mpl.rc_context({"lines.markeredgewidth": 5, "xtick.direction": "in"}):  # a user's matplotlibrc
        second = build_report(run_dir)
    assert [path.read_bytes() for path in (second.summary, second.verdict, second.page)] == before
    assert sorted(path.name for path in run_dir.iterdir()) == [
        ".lock", JOURNAL_NAME, "report.html", "summary.txt", "verdict.json",
    ]  # fmt: skip
    assert render_report(second).endswith("report.html")
    assert not re.search(rb"20\d\d-\d\d-\d\d", before[2])


def test_a_torn_tail_is_not_an_event(tmp_path):
    run_dir = write(tmp_path / "run", planted_effect())
    whole = build_report(run_dir).text
    journal = run_dir / JOURNAL_NAME
    with journal.open("ab") as file:
        file.write(b'{"n":999,"prev":"')
    assert build_report(run_dir).text == whole
    journal.write_bytes(journal.read_bytes().replace(b'"episode":3', b'"episode":4', 1))
    with pytest.raises(JournalError):
        build_report(run_dir)


def test_no_journal_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no journal"):
        build_report(tmp_path)
    (tmp_path / JOURNAL_NAME).touch()
    with pytest.raises(UsageError, match="no event yet"):
        build_report(tmp_path)
