"""A job on a machine of GitHub: its variables and files, and its steps."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.processes.children import environment

ROOT = Path(__file__).resolve().parents[3]
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
            "base.py",
            GITHUB_EVENT_NAME=event_name,
            GITHUB_EVENT_PATH=str(file),
            INPUT_BASE=base,
            GATE_ERRORS=str(self.errors),
            GATE_TOKEN=TOKEN,
        )

    @property
    def errors(self) -> Path:
        """The file with the reason why there is no answer."""
        return self.temporary / "esper_ab/errors.txt"

    @property
    def output(self) -> dict[str, str]:
        """The outputs of the steps so far."""
        return dict(line.split("=", 1) for line in self.outputs.read_text().splitlines())


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

    def is_due(self, condition: str, *, failed: bool) -> bool:
        """Evaluate the condition of a step; `failed`: whether one before it has failed."""
        terms = condition.removeprefix("${{ ").removesuffix(" }}").split(" && ")
        if failed and not {"always()", "!cancelled()"} & {*terms}:
            return False
        for term in terms:
            if term in ("always()", "!cancelled()", "success()"):
                continue
            name, operator, expected = term.split()
            if (self.values.get(name, "") == expected.strip("'")) != (operator == "=="):
                return False
        return True

    def run(self) -> list[tuple[str, int]]:
        """Run the steps, and return the names and statuses of those that ran."""
        statuses = []
        for step in self.steps:
            failed = any(status for _, status in statuses)
            if "uses" in step or not self.is_due(step.get("if", "success()"), failed=failed):
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
        return statuses
