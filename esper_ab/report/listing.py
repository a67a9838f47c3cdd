"""A static page over all experiment directories below a folder: state, progress, answer, and links to their reports."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from esper_ab.contracts.answer_files import PAGE
from esper_ab.contracts.files_below import write_below
from esper_ab.readers.listed import Listed, list_runs
from esper_ab.report.document import Document
from esper_ab.report.page import fill_template


def write_listing(folder: Path, page: Path, *, refresh_s: int = 0) -> None:
    """Replace the file `page` atomically; a browser reloads it every `refresh_s` seconds (0: never)."""
    title = str(folder) if folder.name else folder.resolve().name
    rows = [
        (listed_experiment, os.path.relpath(listed_experiment.experiment_dir, folder), _report(listed_experiment, page))
        for listed_experiment in list_runs(folder)
    ]
    text = fill_template(
        "listing.html.jinja",
        refresh_s=refresh_s,
        script="",
        written=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
        document=Document(title=title, name="experiments", nodes=()),
        rows=rows,
    )
    write_below(page.parent, page.name, text.encode())


def _report(listed_experiment: Listed, page: Path) -> str:
    """Return the address of an experiment's report, seen from `page`; "" while there is none."""
    report = Path(listed_experiment.experiment_dir) / PAGE
    if report.is_file():
        return quote(os.path.relpath(report, page.parent))
    return ""
