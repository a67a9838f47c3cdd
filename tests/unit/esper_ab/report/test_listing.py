"""A static page over all experiment directories below a folder: state, progress, answer, and links to their reports."""

import html
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.journals.ready_journals import planted_effect, write

from esper_ab.readers.status_text import status_text
from esper_ab.report.build import build_report
from esper_ab.report.listing import write_listing

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("a folder")
    build_report(write(root / "points" / "done", planted_effect()))
    write(root / NASTY, planted_effect()[:40])
    return root


def write_page(folder: Path, page: Path, **options: int) -> str:
    write_listing(folder, page, **options)
    return page.read_text()


def test_every_experiment_is_listed_with_its_answer(folder, tmp_path):
    page = write_page(folder, tmp_path / "page.html")
    assert "shaped is better than simplified by" in page
    assert "stale" in page
    assert "no verdict yet" in page
    assert page.count("<tr><th") == 2 + 1  # two rows and the header
    assert "<img" not in page
    assert "<script" not in page


@pytest.mark.parametrize("is_below", [True, False])
def test_links_of_the_list_page_lead_to_the_reports(folder, tmp_path, is_below):
    page = folder / "page.html" if is_below else tmp_path / "page.html"
    (link,) = re.findall(r'href="([^"]*report.html)"', write_page(folder, page))
    assert (page.parent / unquote(link)).samefile(folder / "points" / "done" / "report.html")


def test_the_list_page_reloads_only_while_it_is_followed(folder, tmp_path):
    assert '<meta http-equiv="refresh" content="5">' in write_page(folder, tmp_path / "page.html", refresh_s=5)
    assert "refresh" not in write_page(folder, tmp_path / "page.html")


def test_the_list_page_suggests_a_command_for_a_missing_report(tmp_path):
    experiment_dir = write(tmp_path / "a folder", planted_effect())
    remedy = f"There is no report yet: `esper-ab report '{experiment_dir}'` writes it."
    assert remedy in status_text(experiment_dir)
    page = html.unescape(write_page(tmp_path, tmp_path / "page.html"))
    assert remedy in page
    assert "no verdict yet" not in page
