"""The [claim] table of a settings file: the sentence that an experiment is to decide, and where it comes from.

It changes nothing about the experiment. The plan shows it, and experiment.toml keeps it among the author's remarks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import did_you_mean

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence that others have written, in words that the verdict of the experiment can confirm or contradict."""

    sentence: _Text  # "Clipping the value loss trains better policies."
    holds_if: str = ""  # a condition as in --fail-unless: "clipped better-than unclipped"
    source: str = ""  # with its page or section
    source_says: str = ""  # what was found there, and on which tasks
    margin_reason: str = ""  # why smaller differences would not matter
    core_minutes: Annotated[float, msgspec.Meta(gt=0)] | None = None  # what the answer may cost


msgspec.json.Decoder(Claim)  # built now, in one thread: tests/house/test_decoders.py


def read_claim(table: object, origin: str) -> Claim:
    """Check the [claim] table of the file `origin`; UsageError if it is not a table, or a key or a value is invalid."""
    if not isinstance(table, Mapping):
        raise UsageError(f"{origin}: claim must be a table, as in [claim], with the line sentence = {table!r}")
    for name in table:
        if name not in Claim.__struct_fields__:
            raise UsageError(f"{origin} [claim]: unknown key {name!r}; {did_you_mean(name, Claim.__struct_fields__)}")
    if "sentence" not in table:
        raise UsageError(f"{origin} [claim]: the sentence is missing; add the line sentence = '…'")
    try:
        return msgspec.convert(dict(table), Claim)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).removesuffix("`").partition(" - at `$.")
        raise UsageError(f"{origin} [claim]: {place} {table[place]!r}: {problem.replace(' | null', '')}") from None


def remarks_on(claim: Claim | None) -> dict[str, Any]:
    """Return the author's remarks for [record] of experiment.toml; {} without a claim."""
    if claim is None:
        return {}
    values = {name: value for name, value in msgspec.structs.asdict(claim).items() if value not in ("", None)}
    condition = ""
    if claim.holds_if:
        condition = f" It holds if {claim.holds_if}."
    return {"description": f"claim: {claim.sentence}{condition}", "variants": {}, "claim": values}
