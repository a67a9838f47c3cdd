"""The last steps of the GitHub Action: the answer in the job summary and in one comment; and the whole action."""

import json
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest
from support.actions.comments_api import Api
from support.actions.job_runner import ROOT, TOKEN, Composite, Runner
from support.repositories.users_repository import users_repository

from esper_ab.gate.gate_file import read_gate_file

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


def test_the_comment_of_a_gate_that_was_refused_leads_to_its_run(runner, api):
    text = "### The gate gave no answer\n\n> gate.toml: no key\n"
    (runner.temporary / "comment.md").write_text(text)
    assert publish(runner, api).returncode == 0
    (comment,) = api.comments
    assert comment["body"] == f"{MARKER}\n{text}\n[run](https://github.com/owner/project/actions/runs/77)\n"


def test_the_reason_of_a_gate_that_left_no_comment_is_published(runner, api):
    (runner.temporary / "errors.txt").write_text("note: x\nerror: ci/gate.toml: no such `file`\n")
    assert publish(runner, api).returncode == 0
    (comment,) = api.comments
    assert comment["body"].startswith(
        f"{MARKER}\n### The gate gave no answer\n\n    error: ci/gate.toml: no such 'file'\n"
    )
    assert runner.summary.read_text() == comment["body"].removeprefix(f"{MARKER}\n")
    (runner.temporary / "errors.txt").unlink()
    assert publish(runner, api).returncode == 0
    assert "    it was not started; the log of the run says why\n" in api.comments[-1]["body"]


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
minutes = 60
"""


@pytest.mark.parametrize(
    ("files", "inputs", "steps", "reason"),
    [
        (
            {"a project/gate.toml": "minuets = 3"},
            {},
            [("Find the commits", 0), ("Run the gate", 0), ("Publish the answer", 0), ("Set the status", 2)],
            "> gate.toml: no key 'minuets'; did you mean minutes?\n\nTo try it locally: `esper-ab gate gate.toml --dry",
        ),
        ({}, {"base": "nosuch"}, [("Find the commits", 2), ("Publish the answer", 0)], "    error: nosuch cannot be f"),
    ],
)
def test_a_pull_request_is_told_why_its_gate_was_refused(files, inputs, steps, reason, tmp_path, api):
    server = users_repository(tmp_path / "server")
    main = server.commit({"a project/train.py": SCRIPT})
    head = server.commit({"a project/train.py": f"{SCRIPT}# changed\n", **files})
    runner = Runner(tmp_path)
    subprocess.run(["git", "clone", "--quiet", server.top.as_uri(), str(runner.workspace)], check=True)
    own_inputs = {"install": "false", "python": sys.executable, "working-directory": "a project"}
    assert Composite(runner, own_inputs | inputs, pull_request(tmp_path, api, main, head)).run() == steps
    (comment,) = api.comments
    assert comment["body"].startswith(f"{MARKER}\n### The gate gave no answer\n\n{reason}")


def pull_request(folder: Path, api: Api, base: str, head: str) -> dict[str, str]:
    """Return the variables of a job for pull request 5."""
    event = folder / "event.json"
    pull_request = {"number": 5, "base": {"sha": base}, "head": {"sha": head, "repo": None}}
    event.write_text(json.dumps({"pull_request": pull_request, "repository": {"full_name": "owner/project"}}))
    return {
        "GITHUB_API_URL": f"http://127.0.0.1:{api.server.server_address[1]}",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event),
    }


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
    inputs = {"install": "false", "python": sys.executable, "working-directory": "a project"}
    action = Composite(runner, inputs, pull_request(tmp_path, api, main, head))
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


@pytest.mark.parametrize("name", ["own-script", "stable-baselines3", "cleanrl"])
def test_an_example_uses_inputs_and_outputs_of_the_action_and_has_a_readable_question(name):
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    folder = ROOT / "docs" / "examples" / "gate"
    workflow = yaml.safe_load((folder / f"{name}.yml").read_text())
    (step,) = (step for step in workflow["jobs"]["gate"]["steps"] if "/esper_ab@" in step.get("uses", ""))
    assert set(step.get("with", {})) <= set(action["inputs"])
    used_outputs = set(re.findall(r"steps\.gate\.outputs\.([\w-]+)", (folder / f"{name}.yml").read_text()))
    assert used_outputs <= set(action["outputs"])
    question = read_gate_file(folder / f"{name}.toml").question()
    assert question.minutes > 0.0
    assert "wall_s" not in str(question.guardrails), "no run would be kept"
    assert workflow["concurrency"]["cancel-in-progress"] == "${{ github.event_name == 'pull_request' }}"
    events = workflow[True]  # what YAML 1.1 makes of `on`
    watched = (events["pull_request"] or {}).get("paths", ["**"])
    assert any(fnmatch(step.get("with", {}).get("file", "gate.toml"), pattern) for pattern in watched)


def test_every_variable_that_a_script_reads_is_given_to_its_step():
    yaml = pytest.importorskip("yaml")
    given = {}
    for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]:
        if script := re.search(r"\.github/gate/(\S+?)\"", step.get("run", "")):
            given[script[1]] = set(step["env"])
    assert set(given) == {"base.py", "run.sh", "publish.py"}
    for script, names in given.items():
        text = (ROOT / ".github" / "gate" / script).read_text()
        read = set(re.findall(r"\b(?:GATE|INPUT)_[A-Z_]+\b", text)) - {"GATE_"}
        assert read <= names | {"GATE_PYTHON"}, script
        assert names <= read | {"GATE_PYTHON"}, script
