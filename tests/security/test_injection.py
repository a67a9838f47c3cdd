"""Untrusted text cannot become markup, SQL, a path, a shell command or a terminal escape sequence."""

import json
import re
import shlex
from html.parser import HTMLParser
from io import StringIO

import click
import msgspec
import pytest
from click.testing import CliRunner
from rich.console import Console
from support.files.hostile_text import EVIL, acts
from support.journals import ready_journals, synthetic
from support.plans import fake_plans
from support.workers.fake_worker import report_of

from esper_ab.commands import cli
from esper_ab.commands._exit_status import invoke
from esper_ab.contracts.codec import ProtocolError, decode_from_worker, encode
from esper_ab.contracts.errors import JournalError, UsageError, WorkerFailed
from esper_ab.contracts.experiment_name import check_name
from esper_ab.contracts.records import Checkpoint
from esper_ab.journal.events import ExperimentEnded, Incident
from esper_ab.journal.fold import fold
from esper_ab.live.on_stderr import Warnings
from esper_ab.live.terminal import LiveView
from esper_ab.readers.sql import VIEWS
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.markdown import render_markdown
from esper_ab.report.page import read_part, render_page
from esper_ab.report.text import render_text
from esper_ab.settings.parse import parse
from esper_ab.settings.request import request

SPEC = fake_plans.plan().blocks[0].runs[0]
BAD_NAMES = ("../up", "a/b", "/abs", ".hidden", "a\nb", "a\x1b[2J", "<b>", "a'--", "", "..")


def evil_events():
    """A journal with hostile text in every free field: reward mode, notes, versions, commit, incidents, end."""
    mode = f"{EVIL}.py:reward"
    shapes = {"a": synthetic.Shape(accuracy=74.0, mode=mode), "b": synthetic.Shape(mode="simplified")}
    first_event, *events = synthetic.Synthetic(groups=shapes).events()
    plan = msgspec.structs.replace(first_event.plan, notes=(EVIL,))
    code = {"commit": EVIL, "dirty": "yes"}
    machine = {"cpu": EVIL}
    first_event = msgspec.structs.replace(first_event, plan=plan, code=code, machine=machine, versions={"torch": EVIL})
    entry = Incident(category="worker_death", run_name="a/0", episode=1, detail=EVIL)
    return [first_event, *events[:-1], entry, ExperimentEnded(status="failed", detail=EVIL)]


@pytest.fixture(scope="module")
def events():
    return evil_events()


@pytest.fixture(scope="module")
def report(events):
    return experiment_report(content(fold(events)))


@pytest.fixture(scope="module")
def experiment_dir(events, tmp_path_factory):
    folder = ready_journals.write(tmp_path_factory.mktemp("evil"), events)
    (folder / "logs").mkdir()
    (folder / "logs" / "a-0.log").write_text(f"fine\n{EVIL}\n")
    return folder


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_a_page_escapes_foreign_markup(report):
    page = render_page(report)
    tags = Tags()
    tags.feed(page)
    assert not {tag for tag, _ in tags.found} & {"img", "iframe", "object", "form"}
    assert [attributes for tag, attributes in tags.found if tag == "script"] == [{}]
    assert f"<script>{read_part('page.js')}</script>" in page  # the only script, whose hash is in the policy
    assert all(attributes["href"].startswith("#") for tag, attributes in tags.found if tag == "a")
    assert not [name for _, attributes in tags.found for name in attributes if name.startswith("on")]
    assert "&lt;script&gt;" in page
    assert acts(page) == set()


def test_a_text_report_escapes_control_sequences(report):
    text = render_text(report, in_full=True)
    assert acts(text) == set()
    assert "\\x1b[2J" in text
    assert not [line for line in text.splitlines() if line.startswith(("# Verdict", "```"))]


def test_a_markdown_report_escapes_foreign_markup(report):
    """The `git checkout` line has exactly three words for a shell."""
    text = render_markdown(report)
    assert acts(text) == set()
    text_outside = re.sub(r"^( *)```sh\n.*?^\1```$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "```" not in text_outside
    for markup in ("<script", "<img", "://evil", "www.evil", "@every"):
        assert markup not in text_outside
    assert not [line for line in text.splitlines() if line.startswith("# Verdict")]

    (line,) = [line for line in text.splitlines() if line.startswith("git checkout")]
    words = shlex.split(line, comments=True)
    assert words[:2] == ["git", "checkout"]
    assert len(words) == 3


@pytest.mark.parametrize("view", VIEWS)
def test_sql_views_return_hostile_text_unchanged(experiment_dir, view):
    """Every view has rows, and the text is returned as a value."""
    result = CliRunner().invoke(cli.group, ["query", str(experiment_dir), f"SELECT * FROM {view}", "--json"])
    assert result.exit_code == 0
    rows = json.loads(result.output)
    assert rows
    if view == "incidents":
        assert EVIL in [row["detail"] for row in rows]


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        (("status",), 0),
        (("status", "-f"), 0),
        (("report",), 0),
        (("report", "--format", "md"), 0),
        (("list",), 0),
        (("logs",), 5),
        (("query", "SELECT detail FROM incidents"), 4),
        (("query", 'SELECT 1 AS "\x1b[2J"'), 4),
    ],
)
def test_commands_escape_control_sequences(experiment_dir, command, lines):
    """`lines` is the length of an output that must show the text, or 0."""
    name, *words = command
    result = CliRunner().invoke(cli.group, [name, str(experiment_dir), *words])
    assert result.exception is None
    assert acts(result.output) == set()
    assert not lines or ("\\x1b[2J" in result.output and len(result.output.splitlines()) == lines)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_live_view_escapes_control_sequences(events, terminal):
    """The view itself only moves the cursor, sets colours and erases lines."""
    output = StringIO()
    with LiveView(events[0].plan, Console(file=output, force_terminal=terminal, width=120)) as view:
        for event in events:
            view.observe(event)
    text = output.getvalue()
    assert not {"\x07", "\x9b", "\u202e"} & set(text)
    assert "\x1b[2J" not in text
    assert "\x1b]" not in text
    assert "\\x1b[2J" in text


def test_warnings_and_errors_escape_control_sequences(capsys):
    warnings = Warnings(incidents=True)
    warnings.observe(EVIL)
    warnings.observe(Incident(category="restart", run_name="a/0", episode=None, detail=EVIL))

    @click.command()
    def command():
        raise WorkerFailed(EVIL)

    assert invoke(command, [], "x") == WorkerFailed.exit_code
    output = capsys.readouterr().err
    assert acts(output) == set()
    assert output.count("\\x1b[2J") == 3


@pytest.mark.parametrize("name", [*BAD_NAMES, "a" * 65])
def test_names_that_are_paths_or_markup_are_refused(name):
    with pytest.raises(UsageError):
        parse(request(groups=(f"{name}=shaped", "wait")))
    if name in BAD_NAMES:
        with pytest.raises(UsageError):
            check_name(name)


@pytest.mark.parametrize("path", ["../../home/x.pt", "/etc/passwd", "a/../x", "checkpoints//x", "a\n", ".x", ""])
def test_a_worker_cannot_name_a_file_outside_the_experiment(path):
    finished = report_of(SPEC, 1)
    evaluation_report = report_of(SPEC, 3)
    checkpoint = Checkpoint(milestone=1, file=path, sha256="0" * 64, size_bytes=1)
    for message in (
        msgspec.structs.replace(finished, checkpoint=checkpoint),
        msgspec.structs.replace(
            evaluation_report, record=msgspec.structs.replace(evaluation_report.record, policy_file=path)
        ),
    ):
        with pytest.raises(ProtocolError):
            decode_from_worker(encode(message))


def test_a_journal_cannot_name_a_file_outside_the_experiment(tmp_path):
    """`logs` and `tidy --check` would read such a file of a received journal."""
    first_event, *_ = evil_events()
    (block, *later_blocks) = first_event.plan.blocks
    (spec, *later_runs) = block.runs
    for evil in (
        msgspec.structs.replace(spec, log_file="../../etc/passwd"),
        msgspec.structs.replace(spec, policy_file="/etc/passwd"),
        msgspec.structs.replace(spec, ref=msgspec.structs.replace(spec.ref, name="../a/0")),
        msgspec.structs.replace(spec, ref=msgspec.structs.replace(spec.ref, group_id=EVIL)),
    ):
        plan = msgspec.structs.replace(
            first_event.plan, blocks=(msgspec.structs.replace(block, runs=(evil, *later_runs)), *later_blocks)
        )
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        ready_journals.write(folder, [msgspec.structs.replace(first_event, plan=plan)])
        result = CliRunner().invoke(cli.group, ["status", str(folder)])
        assert isinstance(result.exception, JournalError)


def test_a_refusal_quotes_a_short_escaped_excerpt():
    hello = msgspec.msgpack.encode({"kind": EVIL * 100})
    with pytest.raises(ProtocolError) as refusal:
        decode_from_worker(hello)
    assert acts(str(refusal.value)) == set()
    assert len(str(refusal.value)) < 250
