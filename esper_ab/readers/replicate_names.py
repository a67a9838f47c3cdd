"""Give each seed a single name: 7, 07 and 7.0 are one seed, whatever program wrote the row. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from esper_ab.contracts.wording import listed
from esper_ab.verdict.observations import Observation, replicate_key

_PLAIN = re.compile(r"(?:0|[1-9][0-9]*)(?:\n(?:0|[1-9][0-9]*))*")  # whole numbers in their shortest form, in lines
_MOST_NAMED = 1  # seeds with several spellings that the note names


def one_name_per_replicate(rows: Sequence[Observation], column: str) -> tuple[list[Observation], tuple[str, ...]]:
    """Return the rows with one name per replicate, and a note if a seed was spelt in several ways.

    A seed with a single spelling keeps it, so that names such as 007 appear in the answer as the user wrote them.
    """
    if _PLAIN.fullmatch("\n".join({row.replicate for row in rows})):  # the usual case, told without a look at each
        return list(rows), ()
    spellings: dict[str, dict[str, None]] = {}
    for row in rows:
        spellings.setdefault(replicate_key(row.replicate), {})[row.replicate] = None
    ambiguous = {key: tuple(names) for key, names in spellings.items() if len(names) > 1}
    if not ambiguous:
        return list(rows), ()
    renamed = []
    for row in rows:
        key = replicate_key(row.replicate)
        if key in ambiguous:
            row = msgspec.structs.replace(row, replicate=key)
        renamed.append(row)
    named = [f"{listed(ambiguous[key])} are one {column}" for key in list(ambiguous)[:_MOST_NAMED]]
    others = ""
    if len(ambiguous) > _MOST_NAMED:
        others = f", and likewise {len(ambiguous) - _MOST_NAMED} more"
    return renamed, (f"{'; '.join(named)}{others}.",)
