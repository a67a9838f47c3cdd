"""Give each seed a single name: 7, 07 and 7.0 are one seed, whatever program wrote the row. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from esper_ab.contracts.wording import listed
from esper_ab.verdict.observations import Observation, seed_key

_MOST_NAMED = 1  # seeds with several spellings that the note names


def one_name_per_seed(rows: Sequence[Observation], column: str) -> tuple[list[Observation], tuple[str, ...]]:
    """Return the rows with one spelling per seed, and a note if a seed had several.

    A seed with a single spelling keeps it, so that names such as 007 appear in the answer as the user wrote them.
    """
    spellings: dict[str, dict[str, None]] = {}
    for row in rows:
        spellings.setdefault(seed_key(row.replicate), {})[row.replicate] = None
    several = {key: tuple(found) for key, found in spellings.items() if len(found) > 1}
    if not several:
        return list(rows), ()
    renamed = [
        msgspec.structs.replace(row, replicate=seed_key(row.replicate)) if seed_key(row.replicate) in several else row
        for row in rows
    ]
    shown = [f"{listed(several[key])} are one {column}" for key in list(several)[:_MOST_NAMED]]
    more = f", and likewise {len(several) - _MOST_NAMED} more" if len(several) > _MOST_NAMED else ""
    return renamed, (f"{'; '.join(shown)}{more}.",)
