"""Pages in a real browser: no console message, no request except for the page, dark and light colours."""

import functools
import http.server
import re
import shutil
import signal
import subprocess
import sys
import threading
from importlib import resources
from pathlib import Path

import pytest
from support.journals.ready_journals import planted_effect, write
from support.journals.synthetic import Shape, Synthetic
from support.processes.waiting import eventually

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.listing import write_listing
from esper_ab.report.page import policy_hash, render_page

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome", "chrome") if (path := shutil.which(name))), ""
)
needs_browser = pytest.mark.skipif(not BROWSER, reason="no Chromium on the path")
SCRIPT = (resources.files("esper_ab.report") / "page.js").read_text(encoding="utf-8")
NASTY = "<img src=x onerror=alert(1)>"


def browse(address: str, home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            "--v=0",
            f"--user-data-dir={home / 'profile'}",
            "--disable-background-networking",
            "--no-first-run",
            "--window-size=1150,1600",
            *options,
            address,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


class Recorder(http.server.SimpleHTTPRequestHandler):
    """Serve the page with a policy that allows only its own script, and record every requested path."""

    requested: list[str]

    def __init__(self, *arguments, requested: list[str], **options) -> None:
        self.requested = requested
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        self.requested.append(self.path)
        super().do_GET()

    def end_headers(self) -> None:
        allowed = f"style-src 'unsafe-inline'; img-src data:; script-src '{policy_hash(SCRIPT)}'"
        self.send_header("Content-Security-Policy", f"default-src 'none'; {allowed}")
        super().end_headers()

    def log_message(self, format, *arguments) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page")
    groups = {"shaped": Shape(accuracy=74.0), NASTY: Shape(), "wait": Shape(accuracy=33.0, controller="wait")}
    events = Synthetic(groups=groups, replicates=6, episodes=4, n_envs=2).events()
    (path / "report.html").write_text(render_page(experiment_report(content(fold(events)))), encoding="utf-8")
    return path


@needs_browser
def test_the_report_page_requests_no_other_file(folder, tmp_path):
    requested: list[str] = []
    handler = functools.partial(Recorder, directory=str(folder), requested=requested)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            done = browse(f"http://127.0.0.1:{server.server_address[1]}/report.html", tmp_path, "--dump-dom")
        finally:
            server.shutdown()
            thread.join()
    assert requested == ["/report.html"]
    assert "CONSOLE" not in done.stderr
    assert done.stdout.count("<svg") >= 8
    assert "&lt;img src=x" in done.stdout
    assert "<img" not in done.stdout


@needs_browser
def test_a_run_named_in_the_url_is_highlighted_in_every_figure(folder, tmp_path):
    dumped = browse(f"{(folder / 'report.html').as_uri()}#run=1-3", tmp_path, "--dump-dom")
    assert "CONSOLE" not in dumped.stderr
    traced_marks = re.findall(r'<g data-mark="([0-9.-]+)"(?: data-tip="[^"]*")? class="traced"', dumped.stdout)
    assert {"1-3", "0.1-3", "1.2-3"} <= set(traced_marks)
    assert all(token.endswith("-3") and "1" in token.split("-")[0].split(".") for token in traced_marks)
    assert dumped.stdout.count('class="enlarge"') == dumped.stdout.count("<figure")
    assert dumped.stdout.count('type="checkbox"') == 3


@needs_browser
@pytest.mark.parametrize("scheme", ["0", "1"])  # Blink's numbers for dark and light
def test_the_report_follows_the_dark_or_light_colour_scheme(folder, tmp_path, scheme):
    picture = tmp_path / "page.png"
    browse(
        (folder / "report.html").as_uri(),
        tmp_path,
        f"--screenshot={picture}",
        f"--blink-settings=preferredColorScheme={scheme}",
    )
    corner = _first_pixel(picture)
    assert (sum(corner) < 200) is (scheme == "0")


def _first_pixel(picture: Path) -> tuple[int, ...]:
    from matplotlib.image import imread

    return tuple(round(255 * float(value)) for value in imread(str(picture))[0, 0, :3])


@needs_browser
def test_the_list_of_experiments_logs_no_console_message(tmp_path):
    write(tmp_path / "runs" / "first", planted_effect())
    write_listing(tmp_path / "runs", tmp_path / "page.html")
    page = browse((tmp_path / "page.html").as_uri(), tmp_path, "--dump-dom")
    assert "CONSOLE" not in page.stderr
    assert "first" in page.stdout


def test_list_follow_adds_new_experiments_to_the_page(tmp_path):
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
