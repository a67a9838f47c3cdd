"""`esper-ab board` as a process: an address to open, rows in a real browser, and an end by Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request

import pytest
from process.test_report_in_browser import BROWSER, browse
from support.journals import planted_effect, write


@pytest.fixture
def address(tmp_path):
    write(tmp_path / "runs" / "first", planted_effect())
    write(tmp_path / "runs" / "second", planted_effect()[:40])
    command = [sys.executable, "-m", "esper_ab.commands.cli", "board", str(tmp_path / "runs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        yield child.stdout.readline().removeprefix("board: ").strip()
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=30) == 130


def test_the_address_shows_every_experiment(address):
    page = urllib.request.urlopen(address, timeout=30).read().decode()
    assert page.count("<tr data-state=") == 2


@pytest.mark.skipif(not BROWSER, reason="no Chromium on the path")
def test_a_browser_filters_rows_and_complains_of_nothing(address, tmp_path):
    shown = browse(address, tmp_path, "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    assert "2 of 2 experiments" in shown.stdout
