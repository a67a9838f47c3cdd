"""The first steps of the GitHub Action, as GitHub runs them: the commits by the event of the job, and the gate."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.actions.job_runner import TOKEN, Runner
from support.repositories.users_repository import UsersRepository, users_repository


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
    assert runner.errors.read_text() == line.replace("::error title=esper_ab gate::", "error: ") + "\n"
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


def test_the_newest_ten_gates_go_into_the_cache(project, runner):
    project.check_out(runner, "main")
    for number in range(12):
        folder = runner.temporary / f"esper_ab/gates/gate-{number}"
        folder.mkdir(parents=True)
        os.utime(folder, (number, number))
    run_gate(runner)
    kept = {path.name for path in (runner.temporary / "esper_ab/gates").iterdir()}
    assert kept == {f"gate-{number}" for number in range(2, 12)}


def test_a_gate_that_is_refused_fails_no_step_but_the_last(project, runner):
    project.check_out(runner, "main")
    done = run_gate(runner)
    assert done.returncode == 0
    assert runner.output == {"status": "2"}
    assert "error: ci/gate.toml: no such file" in runner.errors.read_text()
    heading, _, reason, _, advice = (runner.temporary / "esper_ab/comment.md").read_text().splitlines()
    assert heading == "### The gate gave no answer"
    assert reason.startswith("> ci/gate.toml: no such file; ")
    assert advice == "To try it locally: `esper-ab gate ci/gate.toml --dry-run`"
