"""Commands that scripts run: every option of ours in them exists, so no script has to be run to find that out."""

from pathlib import Path

import pytest
from support.command_lines import check_command_line

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SHELL = sorted(path for path in SCRIPTS.iterdir() if path.is_file() and path.read_text().startswith("#!"))


def _commands(script: Path) -> list[str]:
    lines = script.read_text().replace("\\\n", " ").splitlines()
    return [line.removeprefix("exec .venv/bin/") for line in lines if "-m esper_ab.launch" in line]


@pytest.mark.parametrize(("script", "line"), [(path.name, line) for path in SHELL for line in _commands(path)])
def test_a_shell_script_gives_options_that_exist(script, line):
    ((name, params),) = check_command_line(line.replace(' "$@"', ""))
    assert name == "launch", script
    assert params["groups"] or params["what"]
