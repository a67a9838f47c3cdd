"""The board: every experiment below a folder, its answer, links by listed names alone, and no script but its own."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from support.journals import planted_effect, write

from esper_ab.live.status import status_text
from esper_ab.report.board import Board
from esper_ab.report.build import build_report

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("experiments")
    build_report(write(made / "points" / "done", planted_effect()))
    write(made / NASTY, planted_effect()[:40])
    (made / "secret").write_text("nobody's business")
    return made


def asked(folder: Path, path: str, *names: str):
    return Board(folder).answer(path, {"experiment": list(names)} if names else {})


def test_every_experiment_is_there_with_its_answer(folder):
    page = asked(folder, "").body.decode()
    assert "shaped is better than simplified by" in page
    assert "stale" in page
    assert "<img" not in page
    assert page.count("<tr data-state=") == 2
    assert 'href="report?experiment=points%2Fdone"' in page


def test_a_static_page_links_to_the_reports_beside_it(folder):
    page = Board(folder).page(served=False)
    (link,) = re.findall(r'href="([^"]*report.html)"', page)
    assert (folder / link).is_file()
    assert "checkbox" not in page


def test_reports_are_served_in_a_sandbox_and_states_and_comparisons_as_text(folder):
    report = asked(folder, "report", "points/done")
    assert report.body == (folder / "points" / "done" / "report.html").read_bytes()
    assert "sandbox allow-scripts" in report.policy
    assert asked(folder, "status", "points/done").kind.startswith("text/plain")
    assert b"finished" in asked(folder, "status", "points/done").body
    assert b"compare needs two experiment directories" in asked(folder, "compare", "points/done").body


@pytest.mark.parametrize("name", ["secret", "../x", "points", "points/done/report.html", "/etc", "points/done/../done"])
def test_nothing_is_read_that_is_not_listed(folder, name):
    for path in ("report", "status", "compare"):
        assert asked(folder, path, name) is None
        assert asked(folder, path, "points/done", name) is None


def test_there_is_no_other_page(folder):
    assert asked(folder, "report") is None
    assert asked(folder, "secret", "points/done") is None
    assert asked(folder, "report", NASTY) is None  # it has none yet


def test_a_link_in_place_of_a_report_is_not_followed(tmp_path):
    experiment_dir = write(tmp_path / "done", planted_effect())
    (tmp_path / "secret").write_text("nobody's business")
    (experiment_dir / "report.html").symlink_to(tmp_path / "secret")
    assert asked(tmp_path, "report", "done") is None


def test_a_finished_experiment_without_report_says_what_status_says(tmp_path):
    there = write(tmp_path / "a folder", planted_effect())
    remedy = f"No report is there yet: `esper-ab report '{there}'` makes it."
    assert remedy in status_text(there)
    page = html.unescape(Board(tmp_path).page(served=True))
    assert remedy in page
    assert "no verdict yet" not in page
    write(tmp_path / "another", planted_effect()[:40])
    assert Board(tmp_path).page(served=True).count("no verdict yet") == 1


def test_tables_that_scroll_have_a_name(folder):
    assert 'tabindex="0" role="region" aria-label="experiments"' in Board(folder).page(served=True)
