"""`esper-ab list --html --follow` as a process: a page that is written again until Ctrl-C, and shows no error."""

import signal
import subprocess
import sys

import pytest
from process.test_report_in_browser import BROWSER, browse
from support.journals import planted_effect, write
from support.patience import eventually

from esper_ab.report.page import write_listing


def test_a_page_that_is_followed_shows_what_comes_and_ends_by_ctrl_c(tmp_path):
    page = tmp_path / "page.html"
    write(tmp_path / "runs" / "first", planted_effect())
    command = [sys.executable, "-m", "esper_ab.commands.cli", "list", str(tmp_path / "runs"), "--html", str(page)]
    with subprocess.Popen([*command, "--follow"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == f"page: {page}\n"
        assert "second" not in page.read_text()
        write(tmp_path / "runs" / "second", planted_effect()[:40])
        eventually(lambda: "second" in page.read_text())
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=30) == 130


@pytest.mark.skipif(not BROWSER, reason="no Chromium on the path")
def test_a_browser_shows_it_and_complains_of_nothing(tmp_path):
    write(tmp_path / "runs" / "first", planted_effect())
    write_listing(tmp_path / "runs", tmp_path / "page.html")
    shown = browse((tmp_path / "page.html").as_uri(), tmp_path, "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    assert "first" in shown.stdout
