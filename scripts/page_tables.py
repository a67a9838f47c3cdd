"""Tables of pages in docs/evidence, each between markers with its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Rows = Iterable[list[str]]  # the first one is the heading


def replace_tables(page: Path, tables: Mapping[str, Callable[[], Rows]]) -> None:
    """Compute the tables of a page one after the other, and write them between `<!-- NAME table -->` markers."""
    text = page.read_text(encoding="utf-8")
    for name, build in tables.items():
        start = f"<!-- {name} table -->\n"
        end = f"\n<!-- /{name} table -->"
        head, old_table = text.split(start)
        _, tail = old_table.split(end)
        lines = "\n".join(_lines(list(build())))
        text = f"{head}{start}{lines}{end}{tail}"
        print(f"{name}: done", flush=True)
    page.write_text(text, encoding="utf-8")


def _lines(rows: list[list[str]]) -> list[str]:
    heading, *body = rows
    return [f"| {' | '.join(row)} |" for row in (heading, ["---"] * len(heading), *body)]
