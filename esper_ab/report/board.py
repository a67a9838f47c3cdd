"""A page over all experiment directories below a folder: what runs, what came out, what can be compared."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.errors import EsperError
from esper_ab.contracts.regular_file import NotRegular, open_regular
from esper_ab.contracts.shell_command import shell_command
from esper_ab.live.listed import Listed, list_runs
from esper_ab.live.reading_room import Query, Served
from esper_ab.live.status import status_text
from esper_ab.report.page import policy_hash, read_part, render_template

_STYLE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Board:
    """Answers of the board of `folder`: the page, reports and states of its experiments, and comparisons of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def page(self, *, served: bool) -> str:
        """Render the board; `served`: with links to pages of this server, else to files beside a static page."""
        runs = list_runs(self._folder)
        script = read_part("board.js")
        return render_template(
            "board.html.jinja", folder=str(self._folder if self._folder.name else self._folder.resolve().name),
            served=served, script=script,
            script_hash=policy_hash(script), states=sorted({one.state for one in runs}),
            rows=[(one, self._name(one), self._links(one, served=served)) for one in runs],
            compare=shell_command("compare"),
        )

    def answer(self, path: str, query: Query) -> Served | None:
        """Return the page at `path`, by names of experiments that are listed; None: there is none."""
        asked = [name for name in query.get("experiment", []) if name]
        if path == "" and not asked:
            policy = f"{_STYLE}; script-src '{policy_hash(read_part('board.js'))}'; connect-src 'self'"
            return Served(body=self.page(served=True).encode(), policy=policy)
        known = {self._name(one): Path(one.experiment_dir) for one in list_runs(self._folder)}
        if not asked or not set(asked) <= set(known):
            return None
        directories = [known[name] for name in asked]
        if path == "report":
            return _report(directories[0])
        if path == "status":
            return _told(lambda: status_text(directories[0]))
        return _told(lambda: _compared(directories)) if path == "compare" else None

    def _name(self, one: Listed) -> str:
        return str(Path(one.experiment_dir).relative_to(self._folder))

    def _links(self, one: Listed, *, served: bool) -> dict[str, str]:
        """Return what a row links to, by title."""
        name, there = self._name(one), (Path(one.experiment_dir) / PAGE).is_file()
        if not served:
            return {"report": quote(f"{name}/{PAGE}")} if there else {}
        pages = (("report", there), ("status", one.state not in ("damaged", "empty", "unreadable")))
        return {page: f"{page}?experiment={quote(name, safe='')}" for page, shown in pages if shown}


def _report(experiment_dir: Path) -> Served | None:
    """Serve a report as it lies there; one that was changed can run no script of its own and read no other page."""
    try:
        with os.fdopen(open_regular(experiment_dir / PAGE, os.O_RDONLY), "rb") as file:
            body = file.read()
    except (NotRegular, OSError):
        return None
    allowed = f"script-src '{policy_hash(read_part('page.js'))}'"
    return Served(body=body, policy=f"{_STYLE}; {allowed}; sandbox allow-scripts allow-modals")


def _compared(directories: list[Path]) -> str:
    # With numpy, which a board alone does not need.
    from esper_ab.joint.together import compare_directories
    from esper_ab.report.external import render_external
    from esper_ab.verdict.analysis_plan import Rule

    return render_external(compare_directories(directories, Rule()))


def _told(say: Callable[[], str]) -> Served:
    try:
        text = say()
    except EsperError as error:
        text = str(error)
    return Served(body=f"{text}\n".encode(), kind="text/plain; charset=utf-8", policy=_STYLE)
