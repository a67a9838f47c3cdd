"""Publish the answer of a gate: in the job summary, and in one comment of the pull request, which is updated.

Reads the variables of GitHub Actions and those that begin with GATE_. Without the right to comment, as in a pull
request of a fork, the summary alone has the answer, and one line says so. The token is sent to GITHUB_API_URL alone.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

_PAGE = 100  # comments
_MOST_PAGES = 30
_TIMEOUT_S = 30
_REFUSED = (401, 403, 404)  # what GitHub answers to a token without the right


def main() -> None:
    """Write the summary and the comment."""
    text = answer()
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as summary:
        summary.write(text)
    number = os.environ.get("GATE_PULL_REQUEST", "")
    if not number or os.environ.get("GATE_COMMENTS") != "true":
        return
    try:
        print(comment(int(number), text))
    except urllib.error.HTTPError as error:
        if error.code in _REFUSED:
            say("notice", f"no comment: the token may not write it ({error.code}); the answer is in the job summary")
        else:
            say("warning", f"no comment: {error.code} {error.reason}; the answer is in the job summary")
    except (OSError, http.client.HTTPException, ValueError) as error:
        say("warning", f"no comment: {error}; the answer is in the job summary")


def answer() -> str:
    """Return the answer in Markdown with a link to the report, or the reason why there is none."""
    place = f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}"
    run = f"{place}/actions/runs/{os.environ['GITHUB_RUN_ID']}"
    report = os.environ.get("GATE_REPORT_URL") or run
    written = Path(os.environ["GATE_COMMENT"])
    if written.is_file():
        link = f"| report | [page]({report}), [run]({run}) |"
        text = written.read_text(encoding="utf-8")
        linked, links = re.subn(r"^\| report \|.*$", lambda _: link, text, flags=re.MULTILINE)
        return linked if links else f"{text}\n[run]({run})\n"  # a gate that was refused has no table
    errors = Path(os.environ["GATE_ERRORS"])
    lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines() if errors.is_file() else []
    reason = lines[-1].replace("`", "'") if lines else "it was not started; the log of the run says why"
    return f"### The gate gave no answer\n\n    {reason}\n\n[run]({run})\n"


def comment(number: int, text: str) -> str:
    """Write the comment on a pull request, or over the one that is there; return what was done."""
    marker = f"<!-- esper_ab gate: {os.environ['GATE_LABEL']} -->".replace("\n", " ")
    comments = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{number}/comments"
    body = {"body": f"{marker}\n{text}"}
    for page in range(1, _MOST_PAGES + 1):
        earlier = request("GET", f"{comments}?per_page={_PAGE}&page={page}")
        for entry in earlier:
            if is_ours(entry, marker):
                request("PATCH", f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues/comments/{entry['id']}", body)
                return f"updated {entry['html_url']}"
        if len(earlier) < _PAGE:
            break
    return f"wrote {request('POST', comments, body)['html_url']}"


def is_ours(entry: dict[str, Any], marker: str) -> bool:
    """Whether a comment is one of ours: others may have copied the marker."""
    author = (entry.get("user") or {}).get("login", "")
    return author == os.environ["GATE_AUTHOR"] and str(entry.get("body") or "").startswith(marker)


def request(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    """Return the answer of GitHub's API."""
    call = urllib.request.Request(
        os.environ["GITHUB_API_URL"] + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
            "User-Agent": "esper_ab",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )
    call.add_unredirected_header("Authorization", f"Bearer {os.environ['GATE_TOKEN']}")
    with urllib.request.urlopen(call, timeout=_TIMEOUT_S) as response:
        return json.load(response)


def say(kind: str, text: str) -> None:
    """Print an annotation of the job, in one line."""
    print(f"::{kind} title=esper_ab gate::{' '.join(text.split())}")


if __name__ == "__main__":
    main()
