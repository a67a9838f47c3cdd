"""Give each seed a single name: 7, 07 and 7.0 are one seed, whatever program wrote the row. Pure."""

from __future__ import annotations

import re

from esper_ab.contracts.wording import listed
from esper_ab.verdict.names import Names
from esper_ab.verdict.observations import replicate_key

_PLAIN = re.compile(r"(?:0|[1-9][0-9]*)(?:\n(?:0|[1-9][0-9]*))*")  # whole numbers in their shortest form, in lines
_MOST_NAMED = 1  # seeds with several spellings that the note names


def one_name_per_replicate(replicates: Names, column: str) -> tuple[Names, tuple[str, ...]]:
    """Return the rows' replicates with one name for each, and a note if a seed was spelt in several ways.

    A seed with a single spelling keeps it, so that names such as 007 appear in the answer as the user wrote them.
    """
    if _PLAIN.fullmatch("\n".join(replicates.names)):  # the usual case, told without a look at each
        return replicates, ()
    keys = {name: replicate_key(name) for name in replicates.names}
    spellings: dict[str, list[str]] = {}
    for name, key in keys.items():
        spellings.setdefault(key, []).append(name)
    ambiguous_names = {key: names for key, names in spellings.items() if len(names) > 1}
    if not ambiguous_names:
        return replicates, ()
    renamed_rows = replicates.renamed(lambda name: keys[name] if keys[name] in ambiguous_names else name)
    named_spellings = [
        f"{listed(ambiguous_names[key])} are one {column}" for key in list(ambiguous_names)[:_MOST_NAMED]
    ]
    rest_words = ""
    if len(ambiguous_names) > _MOST_NAMED:
        rest_words = f", and likewise {len(ambiguous_names) - _MOST_NAMED} more"
    return renamed_rows, (f"{'; '.join(named_spellings)}{rest_words}.",)
