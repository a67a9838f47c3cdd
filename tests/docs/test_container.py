"""What the container's files name exists; building and running them is the workflow's, which has a daemon."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_dockerfile_copies_what_exists_and_starts_the_command():
    text = (ROOT / "Dockerfile").read_text()
    stages = re.findall(r"^FROM \S+(?: AS (\w+))?", text, flags=re.MULTILINE)
    assert stages == ["build", ""]
    for source in re.findall(r"^COPY (?!--from)(\S+) ", text, flags=re.MULTILINE):
        assert (ROOT / source).exists()
    assert json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, flags=re.MULTILINE)[0]) == ["esper-ab"]
    assert "USER esper" in text


def test_the_development_container_builds_a_stage_of_it():
    asked = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert (ROOT / ".devcontainer" / asked["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert f" AS {asked['build']['target']}\n" in (ROOT / "Dockerfile").read_text()
    assert (ROOT / asked["postCreateCommand"].split()[0]).is_file()
