"""Find the commits that a gate compares, from the event of a workflow; fetch what a shallow checkout lacks.

Reads the variables of GitHub Actions, INPUT_BASE, GATE_ERRORS and GATE_TOKEN. Writes the outputs `base`, `head` and
`pull-request` or, without a base, the reason into the file GATE_ERRORS, which is published.
The token is passed to git by its environment only, so it is in no file, no command line and no log.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

_NO_COMMIT = "0" * 40  # "before" of the first push to a branch


def main() -> None:
    """Write the outputs, or end with one line."""
    event: dict[str, Any] = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    refuse_foreign_code(os.environ["GITHUB_EVENT_NAME"], event)
    write_output("pull-request", event.get("pull_request", {}).get("number", ""))  # first, for the reason of a refusal
    head = git("rev-parse", "--verify", "HEAD^{commit}")
    asked_base = os.environ.get("INPUT_BASE", "").strip()
    base = commit_of(asked_base) if asked_base else base_of(event, head)
    write_output("base", base)
    write_output("head", head)
    print(f"base is {base}, head is {head}")


def write_output(name: str, value: object) -> None:
    """Write an output of this step."""
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as outputs:
        outputs.write(f"{name}={value}\n")


def refuse_foreign_code(event_name: str, event: dict[str, Any]) -> None:
    """End if code of a fork would run with the rights of this repository."""
    if event_name != "pull_request_target":
        return
    head_repository = event["pull_request"]["head"]["repo"] or {}
    if head_repository.get("full_name") != event["repository"]["full_name"]:
        refuse(
            "pull_request_target runs the code of a fork with your token and secrets; use pull_request, where the "
            "answer is in the job summary"
        )


def base_of(event: dict[str, Any], head: str) -> str:
    """Return the commit that the event compares with: what a pull request or a push would change."""
    if "pull_request" in event:
        pull_request = event["pull_request"]
        parents = [line.split()[1] for line in git("cat-file", "-p", head).splitlines() if line.startswith("parent ")]
        if parents[1:] == [pull_request["head"]["sha"]]:  # the merge that GitHub has made
            return commit_of(parents[0])
        return merge_base(pull_request["base"]["sha"], head)
    if "merge_group" in event:
        return commit_of(event["merge_group"]["base_sha"])
    default_branch = event.get("repository", {}).get("default_branch", "")
    before = event.get("before", _NO_COMMIT)
    if before != _NO_COMMIT:
        return commit_of(before)
    base = merge_base(default_branch, head) if default_branch else head
    if base == head:
        refuse("this event names no other state of the code; set the input base, as in base: v1.2")
    return base


def merge_base(state: str, head: str) -> str:
    """Return where `head` left `state`; needs the history of both."""
    commit = commit_of(state)
    if git("rev-parse", "--is-shallow-repository") == "true":
        fetch("--unshallow", commit)
    common_commit = run("merge-base", commit, head)
    if common_commit.returncode:
        refuse(f"{state} and HEAD have no common commit; set the input base")
    return common_commit.stdout.strip()


def commit_of(state: str) -> str:
    """Return the commit of a branch, tag or commit, which is fetched if it is missing here."""
    for name in (state, f"origin/{state}"):
        local_commit = run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if not local_commit.returncode:
            return local_commit.stdout.strip()
    fetch("--depth=1", state)
    return git("rev-parse", "--verify", "FETCH_HEAD^{commit}")


def fetch(how: str, state: str) -> None:
    """Fetch `state` from origin, with the token if there is one; end with git's words if that fails."""
    fetching = run("fetch", "--quiet", "--no-tags", how, "--end-of-options", "origin", state, environment=authorized())
    if fetching.returncode:
        reason = " ".join(fetching.stderr.split())
        refuse(f"{state} cannot be fetched: {reason}")


def authorized() -> dict[str, str]:
    """Return the variables by which git authenticates to this server, without writing them anywhere."""
    token = os.environ.get("GATE_TOKEN", "")
    if not token:
        return {}
    credentials = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    return {
        "GIT_CONFIG_COUNT": "2",  # the first one drops what actions/checkout may have left: two would be refused
        "GIT_CONFIG_KEY_0": f"http.{server}/.extraheader",
        "GIT_CONFIG_VALUE_0": "",
        "GIT_CONFIG_KEY_1": f"http.{server}/.extraheader",
        "GIT_CONFIG_VALUE_1": f"AUTHORIZATION: basic {credentials}",
        "GIT_TERMINAL_PROMPT": "0",
    }


def git(*words: str) -> str:
    """Return what git prints; end with its words if it fails."""
    result = run(*words)
    if result.returncode:
        refuse(f"git {words[0]}: {' '.join(result.stderr.split())}; did actions/checkout run before?")
    return result.stdout.strip()


def run(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run git in the workspace."""
    folder = os.environ["GITHUB_WORKSPACE"]
    variables = {key: value for key, value in os.environ.items() if key != "GATE_TOKEN"} | (environment or {})
    trusted = ("-c", f"safe.directory={folder}")  # a container has another user
    return subprocess.run(
        ["git", *trusted, *words], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


def refuse(reason: str) -> NoReturn:
    """End the job with one line."""
    print(f"::error title=esper_ab gate::{reason}")
    errors = Path(os.environ["GATE_ERRORS"])
    errors.parent.mkdir(parents=True, exist_ok=True)
    errors.write_text(f"error: {reason}\n", encoding="utf-8")
    sys.exit(2)


if __name__ == "__main__":
    main()
