"""Tables in documents: what stands between two marks is written by a script, and by nobody else."""

from __future__ import annotations


def between(page: str, mark: str, text: str) -> str:
    """`page` with what stands between <!-- mark --> and <!-- /mark --> replaced; ValueError where they are not."""
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"no {begin} … {end} in the page")
    return f"{head}{begin}\n{text}\n{end}{tail}"
