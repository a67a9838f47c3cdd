"""Generated tables in documents: a script writes the text between two marks."""

from __future__ import annotations


def between(page: str, mark: str, text: str) -> str:
    """Return `page` with the text between <!-- mark --> and <!-- /mark --> replaced; ValueError if the marks are
    missing.
    """
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"no {begin} … {end} in the page")
    return f"{head}{begin}\n{text}\n{end}{tail}"
