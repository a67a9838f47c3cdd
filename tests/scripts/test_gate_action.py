"""Each step of the GitHub Action, as GitHub runs it: its event file, variables and files, and a server for its API."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.processes.children import environment
from support.repositories.users_repository import UsersRepository, users_repository

ROOT = Path(__file__).resolve().parents[2]
STEPS = ROOT / ".github" / "gate"
TOKEN = "ghs_secret"


class Runner:
    """A job on a machine of GitHub."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "a workspace"
        self.temporary = folder / "temp"
        self.temporary.mkdir(parents=True)
        self.outputs = self.temporary / "output"
        self.summary = self.temporary / "summary.md"
        self.outputs.touch()

    def step(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script of the action."""
        command = [sys.executable] if script.endswith(".py") else []
        return self.run([*command, str(STEPS / script)], ".", variables)

    def run(self, words: list[str], folder: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a command in a folder of the workspace."""
        plain = {key: value for key, value in environment().items() if not key.startswith(("GITHUB_", "GIT_"))}
        return subprocess.run(
            words,
            cwd=self.workspace / folder,
            env=plain
            | {
                "GITHUB_OUTPUT": str(self.outputs),
                "GITHUB_STEP_SUMMARY": str(self.summary),
                "GITHUB_WORKSPACE": str(self.workspace),
                "GITHUB_SERVER_URL": "https://github.com",
                "GITHUB_REPOSITORY": "owner/project",
                "GITHUB_RUN_ID": "77",
            }
            | variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def find_base(self, event_name: str, event: dict[str, Any], base: str = "") -> subprocess.CompletedProcess[str]:
        """Run the first step."""
        file = self.temporary / "event.json"
        file.write_text(json.dumps(event))
        return self.step(
            "base.py", GITHUB_EVENT_NAME=event_name, GITHUB_EVENT_PATH=str(file), INPUT_BASE=base, GATE_TOKEN=TOKEN
        )

    @property
    def output(self) -> dict[str, str]:
        """The outputs of the steps so far."""
        return dict(line.split("=", 1) for line in self.outputs.read_text().splitlines())


class Project:
    """The repository on the server: main has two commits, the branch of a pull request one, and they are merged."""

    def __init__(self, folder: Path) -> None:
        self.repository: UsersRepository = users_repository(folder / "server")
        git = self.repository.git
        self.first = self.repository.commit({"train.py": "1\n"}, tag="v1")
        git("checkout", "--quiet", "-b", "change")
        self.head = self.repository.commit({"change.py": "2\n"})
        git("checkout", "--quiet", "main")
        self.main = self.repository.commit({"other.py": "3\n"})
        git("checkout", "--quiet", "-b", "merged")
        git("merge", "--quiet", "--no-edit", "change")
        self.merged = git("rev-parse", "HEAD").strip()
        git("checkout", "--quiet", "main")
        git("config", "uploadpack.allowAnySHA1InWant", "true")  # as on GitHub

    def check_out(self, runner: Runner, branch: str, *how: str) -> None:
        """Do what actions/checkout does."""
        words = ["git", "clone", "--quiet", *how, "--branch", branch, self.repository.top.as_uri(), runner.workspace]
        subprocess.run(words, check=True)

    def pull_request(self, fork: str = "owner/project") -> dict[str, Any]:
        """Return the event of the pull request."""
        return {
            "pull_request": {
                "number": 5,
                "base": {"sha": self.main},
                "head": {"sha": self.head, "repo": {"full_name": fork}},
            },
            "repository": {"full_name": "owner/project", "default_branch": "main"},
        }


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_a_pull_request_is_compared_with_what_it_is_merged_into(project, runner):
    """As checked out by default: the merge alone, without its parents."""
    project.check_out(runner, "merged", "--depth=1")
    assert runner.find_base("pull_request", project.pull_request()).returncode == 0
    assert runner.output == {"base": project.main, "head": project.merged, "pull-request": "5"}
    known = ["git", "cat-file", "-e", project.main]
    assert subprocess.run(known, cwd=runner.workspace, check=False).returncode == 0


def test_a_checked_out_head_is_compared_with_where_it_left_its_base(project, runner):
    project.check_out(runner, "change", "--depth=1")
    assert runner.find_base("pull_request", project.pull_request()).returncode == 0
    assert runner.output == {"base": project.first, "head": project.head, "pull-request": "5"}


@pytest.mark.parametrize(
    ("event_name", "event", "branch", "base"),
    [
        ("push", {"before": "first"}, "main", "first"),
        ("push", {"before": "0" * 40, "repository": {"default_branch": "main"}}, "change", "first"),
        ("merge_group", {"merge_group": {"base_sha": "main"}}, "merged", "main"),
        ("workflow_dispatch", {"repository": {"default_branch": "main"}}, "change", "first"),
    ],
)
def test_other_events_name_their_own_base(event_name, event, branch, base, project, runner):
    project.check_out(runner, branch, "--depth=1")
    commits = {"first": project.first, "main": project.main}
    named_event = json.loads(json.dumps(event), object_hook=lambda table: _with_commits(table, commits))
    done = runner.find_base(event_name, named_event)
    assert done.returncode == 0, done.stdout
    assert runner.output["base"] == commits[base]
    assert runner.output["pull-request"] == ""


def _with_commits(table: dict[str, Any], commits: dict[str, str]) -> dict[str, Any]:
    return {
        key: commits[value] if key in ("before", "base_sha") and value in commits else value
        for key, value in table.items()
    }


@pytest.mark.parametrize("name", ["v1", "change", "full"])
def test_a_base_may_be_named(name, project, runner):
    project.check_out(runner, "main", "--depth=1")
    commits = {"v1": project.first, "change": project.head, "full": project.first}
    asked = project.first if name == "full" else name
    assert runner.find_base("push", {"before": project.main}, asked).returncode == 0
    assert runner.output["base"] == commits[name]


@pytest.mark.parametrize(
    ("event_name", "event", "base", "words"),
    [
        (
            "schedule",
            {"repository": {"default_branch": "main"}},
            "",
            "names no other state of the code; set the input b",
        ),
        ("push", {}, "no-such-branch", "no-such-branch cannot be fetched: "),
        ("push", {}, "--upload-pack=touch x", "--upload-pack=touch x cannot be fetched: "),
    ],
)
def test_a_base_that_is_not_there_ends_the_job_in_one_line(event_name, event, base, words, project, runner):
    project.check_out(runner, "main", "--depth=1")
    done = runner.find_base(event_name, event, base)
    assert done.returncode == 2
    (line,) = done.stdout.splitlines()
    assert line.startswith("::error title=esper_ab gate::")
    assert words in line
    assert not (runner.workspace / "x").exists()


@pytest.mark.parametrize("fork", ["somebody/project", None])
def test_code_of_a_fork_gets_no_rights_of_the_repository(fork, project, runner):
    project.check_out(runner, "change")
    event = project.pull_request()
    event["pull_request"]["head"]["repo"] = fork and {"full_name": fork}
    done = runner.find_base("pull_request_target", event)
    assert (done.returncode, runner.output) == (2, {})
    assert "pull_request_target runs the code of a fork with your token" in done.stdout


def test_without_a_checkout_the_job_ends_in_one_line(project, runner):
    runner.workspace.mkdir()
    done = runner.find_base("push", {"before": project.main})
    assert done.returncode == 2
    assert "did actions/checkout run before?" in done.stdout


def test_the_token_stays_in_no_file_and_in_no_output(project, runner):
    project.check_out(runner, "change", "--depth=1")
    done = runner.find_base("pull_request", project.pull_request())
    secrets = (TOKEN, "eC1hY2Nlc3MtdG9rZW4")  # the begin of x-access-token in base 64
    files = [path for path in runner.workspace.rglob("*") if path.is_file()]
    written = b"".join(path.read_bytes() for path in [*files, runner.outputs])
    for secret in secrets:
        assert secret not in done.stdout + done.stderr
        assert secret.encode() not in written


class Api:
    """The part of GitHub's API that concerns comments; `refuses` is the status of all answers."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str]] = []
        self.tokens = set[str]()
        self.refuses = 0
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _, _, query = self.path.partition("?")
                page = int(dict(part.split("=") for part in query.split("&"))["page"])
                self.answer(api.comments[100 * (page - 1) : 100 * page])

            def do_POST(self) -> None:
                api.comments.append({"id": len(api.comments), **self.received()})
                self.answer({"html_url": "https://github.com/new"})

            def do_PATCH(self) -> None:
                number = int(self.path.rpartition("/")[2])
                api.comments[number] |= self.received()
                self.answer({})

            def received(self) -> Any:
                return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def answer(self, content: Any) -> None:
                api.calls.append((self.command, self.path.partition("?")[0]))
                api.tokens.add(self.headers["Authorization"])
                self.send_response(api.refuses or 200)
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def add(self, author: str, body: str) -> None:
        """Add a comment that somebody has written."""
        number = len(self.comments)
        self.comments.append({"id": number, "user": {"login": author}, "body": body, "html_url": f"c{number}"})


@pytest.fixture
def api() -> Iterator[Api]:
    api = Api()
    thread = threading.Thread(target=api.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield api
    api.server.shutdown()
    api.server.server_close()
    thread.join()


MARKER = "<!-- esper_ab gate: gate -->"
BOT = "github-actions[bot]"
ANSWER = "### NOT WORSE: the gate is passed\n\n| claim | x |\n|---|---|\n| report | `/temp/x.html` |\n"
LINKED = ANSWER.replace(
    "`/temp/x.html`", "[page](https://artifact), [run](https://github.com/owner/project/actions/runs/77)"
)


def publish(runner: Runner, api: Api | None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the step that publishes the answer."""
    runner.workspace.mkdir(exist_ok=True)
    port = api.server.server_address[1] if api else 9  # discard: nobody answers
    names = {
        "GATE_AUTHOR": BOT,
        "GATE_COMMENT": str(runner.temporary / "comment.md"),
        "GATE_COMMENTS": "true",
        "GATE_ERRORS": str(runner.temporary / "errors.txt"),
        "GATE_LABEL": "gate",
        "GATE_PULL_REQUEST": "5",
        "GATE_REPORT_URL": "https://artifact",
        "GATE_TOKEN": TOKEN,
        "GITHUB_API_URL": f"http://127.0.0.1:{port}",
    }
    return runner.step("publish.py", **names | variables)


def test_the_answer_is_in_the_summary_and_in_a_new_comment(runner, api):
    (runner.temporary / "comment.md").write_text(ANSWER)
    api.add("somebody", f"{MARKER}\nforged")
    api.add(BOT, f"quoted: {MARKER}")
    api.add(BOT, "<!-- esper_ab gate: another -->\nanswer")
    done = publish(runner, api)
    assert (done.returncode, done.stdout) == (0, "wrote https://github.com/new\n")
    assert runner.summary.read_text() == LINKED
    assert [comment["body"] for comment in api.comments[3:]] == [f"{MARKER}\n{LINKED}"]
    assert api.comments[0]["body"].endswith("forged")
    assert api.tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in done.stdout + done.stderr + runner.summary.read_text()


def test_the_comment_of_an_earlier_job_is_updated_wherever_it_is(runner, api):
    (runner.temporary / "comment.md").write_text(ANSWER)
    for number in range(150):
        api.add("somebody", f"comment {number}")
    api.add(BOT, f"{MARKER}\nold")
    assert publish(runner, api).stdout == "updated c150\n"
    assert api.comments[150]["body"] == f"{MARKER}\n{LINKED}"
    assert len(api.comments) == 151
    assert api.calls[-1] == ("PATCH", "/repos/owner/project/issues/comments/150")


@pytest.mark.parametrize(("status", "kind"), [(403, "notice"), (404, "notice"), (401, "notice"), (502, "warning")])
def test_without_the_right_to_comment_the_summary_alone_has_the_answer(status, kind, runner, api):
    (runner.temporary / "comment.md").write_text(ANSWER)
    api.refuses = status
    done = publish(runner, api)
    (line,) = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert line.startswith(f"::{kind} title=esper_ab gate::no comment: ")
    assert line.endswith("; the answer is in the job summary")
    assert runner.summary.read_text() == LINKED


def test_a_server_that_does_not_answer_fails_no_job(runner):
    (runner.temporary / "comment.md").write_text(ANSWER)
    done = publish(runner, None)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("::warning title=esper_ab gate::no comment: ")


@pytest.mark.parametrize("variables", [{"GATE_PULL_REQUEST": ""}, {"GATE_COMMENTS": "false"}])
def test_without_a_pull_request_or_the_wish_there_is_no_comment(variables, runner, api):
    (runner.temporary / "comment.md").write_text(ANSWER)
    assert publish(runner, api, **variables).stdout == ""
    assert (runner.summary.read_text(), api.calls) == (LINKED, [])


def run_gate(runner: Runner, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the step that runs the gate."""
    names = {
        "GATE_BASE": "HEAD",
        "GATE_COMMENT": str(runner.temporary / "esper_ab/comment.md"),
        "GATE_ERRORS": str(runner.temporary / "esper_ab/errors.txt"),
        "GATE_FILE": "ci/gate.toml",
        "GATE_FOLDER": str(runner.temporary / "esper_ab"),
        "GATE_HEAD": "HEAD",
        "GATE_MINUTES": "",
        "GATE_PYTHON": sys.executable,
        "GATE_REFERENCES": str(runner.temporary / "esper_ab/references"),
    }
    return runner.step("run.sh", **names | variables)


def test_a_gate_that_is_refused_fails_the_last_step_and_its_reason_is_published(project, runner, api):
    project.check_out(runner, "main")
    done = run_gate(runner)
    assert done.returncode == 0, "the last step sets the status"
    assert runner.output == {"status": "2"}
    published = publish(
        runner,
        api,
        GATE_COMMENT=str(runner.temporary / "esper_ab/comment.md"),
        GATE_ERRORS=str(runner.temporary / "esper_ab/errors.txt"),
    )
    assert published.returncode == 0
    (comment,) = api.comments
    assert "### The gate gave no answer\n\n    error: ci/gate.toml: no such file" in comment["body"]


def test_the_newest_ten_gates_go_into_the_cache(project, runner):
    project.check_out(runner, "main")
    for number in range(12):
        folder = runner.temporary / f"esper_ab/gates/gate-{number}"
        folder.mkdir(parents=True)
        os.utime(folder, (number, number))
    run_gate(runner)
    kept = {path.name for path in (runner.temporary / "esper_ab/gates").iterdir()}
    assert kept == {f"gate-{number}" for number in range(2, 12)}


class Composite:
    """The action as GitHub runs it: the steps of action.yml in order, without those of other actions."""

    def __init__(self, runner: Runner, inputs: dict[str, str], variables: dict[str, str]) -> None:
        yaml = pytest.importorskip("yaml")
        action = yaml.safe_load((ROOT / "action.yml").read_text())
        self.runner = runner
        self.variables = variables
        self.steps = action["runs"]["steps"]
        defaults = {name: str(entry["default"]) for name, entry in action["inputs"].items()}
        assert set(inputs) <= set(defaults)
        self.values = {f"inputs.{name}": value for name, value in (defaults | inputs).items()}
        self.values |= {"runner.temp": str(runner.temporary), "github.token": TOKEN}

    def value(self, text: str) -> str:
        """Fill in the expressions of a text; a property that a step has not set is empty, as on GitHub."""
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda match: self.values.get(match[1], ""), text)

    def is_due(self, condition: str) -> bool:
        """Evaluate the condition of a step, of which none before has failed."""
        terms = [term for term in condition.split(" && ") if term != "always()"]
        for term in terms:
            name, operator, expected = term.split()
            if (self.values.get(name, "") == expected.strip("'")) != (operator == "=="):
                return False
        return True

    def run(self) -> list[tuple[str, int]]:
        """Run the steps, and return the names and statuses of those that ran; the last one may fail."""
        statuses = []
        for step in self.steps:
            if "uses" in step or not self.is_due(step.get("if", "always()")):
                continue
            script = step["run"].replace("$GITHUB_ACTION_PATH", str(ROOT))
            names = {key: self.value(value) for key, value in step.get("env", {}).items()}
            folder = self.value(step.get("working-directory", "."))
            done = self.runner.run(["bash", "-e", "-o", "pipefail", "-c", script], folder, self.variables | names)
            statuses.append((step["name"], done.returncode))
            self.log = done.stdout + done.stderr
            assert TOKEN not in self.log
            if identity := step.get("id"):
                self.values[f"steps.{identity}.outcome"] = "success" if done.returncode == 0 else "failure"
                for key, value in self.runner.output.items():
                    self.values.setdefault(f"steps.{identity}.outputs.{key}", value)
            if done.returncode:
                break
        return statuses


SCRIPT = """
import json, random, sys
from pathlib import Path

seed, out = int(sys.argv[1]), Path(sys.argv[2])
draw = random.Random(seed + LEVEL)
(out / "result.json").write_text(json.dumps({"score": LEVEL + draw.random()}))
"""
QUESTION = """
train = "PYTHON train.py {seed} {out}"
higher = "score"
margin = 0.5
minutes = 4
"""


@pytest.mark.slow
@pytest.mark.parametrize(("level", "status", "words"), [(8, 12, "### WORSE: the gate is not passed"), (10, 0, "### ")])
def test_the_whole_action_judges_a_pull_request(level, status, words, tmp_path, api):
    """Whatever is in the checkout that git does not track is no part of the code."""
    server = users_repository(tmp_path / "server")
    question = QUESTION.replace("PYTHON", sys.executable)
    server.commit({"a project/train.py": SCRIPT.replace("LEVEL", "10"), "a project/gate.toml": question})
    server.git("checkout", "--quiet", "-b", "change")
    server.commit({"a project/train.py": SCRIPT.replace("LEVEL", str(level)) + "# changed\n"})
    main, head = (server.git("rev-parse", name).strip() for name in ("main", "change"))
    runner = Runner(tmp_path)
    clone = ["git", "clone", "--quiet", "--depth=1", "-b", "change", server.top.as_uri(), str(runner.workspace)]
    subprocess.run(clone, check=True)
    (runner.workspace / "data.bin").write_bytes(b"1")
    event = tmp_path / "event.json"
    pull_request = {"number": 5, "base": {"sha": main}, "head": {"sha": head, "repo": None}}
    event.write_text(json.dumps({"pull_request": pull_request, "repository": {"full_name": "owner/project"}}))
    variables = {
        "GITHUB_API_URL": f"http://127.0.0.1:{api.server.server_address[1]}",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
    }
    inputs = {"install": "false", "python": sys.executable, "working-directory": "a project"}
    action = Composite(runner, inputs, variables)
    assert action.run() == [
        ("Find the commits", 0),
        ("Run the gate", 0),
        ("Publish the answer", 0),
        ("Set the status", status),
    ]
    (comment,) = api.comments
    assert comment["body"].startswith(f"{MARKER}\n{words}")
    assert runner.summary.read_text() == comment["body"].removeprefix(f"{MARKER}\n")
    assert len(comment["body"].splitlines()) <= 16
    assert (Path(runner.output["directory"]) / "gate.json").is_file()
    assert any((runner.temporary / "esper_ab/references").iterdir())
