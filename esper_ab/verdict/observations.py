"""All observed runs as one table with a row per run, from journals, a CSV file or a data frame. Pure.

A missing row means that the run does not exist yet or is not needed. A row without a value means that the run was lost.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from esper_ab.verdict.finding import Finding

if TYPE_CHECKING:  # all need numpy, which commands without outcomes do not load
    from esper_ab.verdict.item_table import ItemTable
    from esper_ab.verdict.items_below import ItemsBelow
    from esper_ab.verdict.runs import Runs

# Names of what a run is evaluated on, in the singular.
_ITEM_WORDS = frozenset(
    {
        "question",
        "prompt",
        "doc",
        "document",
        "item",
        "episode",
        "rollout",
        "scene",
        "scenario",
        "sample",
        "example",
        "problem",
    }
)
_NUMBERED = ("id", "ids", "idx", "index", "no", "nr", "num", "number", "name")  # a suffix that changes no meaning
POSITION = "position"  # the pair column of outcomes that were given in lists, without names of seeds
_WHOLE = re.compile(r"([+-]?[0-9]+)(?:\.0*)?")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the runs of one task that are known only from records."""

    scope: str  # what the answer is conditional on, in words
    findings: tuple[Finding, ...] = ()  # of the audit
    same_records: frozenset[tuple[str, str]] = frozenset()  # comparisons with equal records in every pair
    # Comparisons of other settings with equal records, most of which are those of several seeds: by chance, perhaps.
    coarse: frozenset[tuple[str, str]] = frozenset()
    same_settings: frozenset[tuple[str, str]] = frozenset()  # comparisons that differ in no setting that is read
    other_code: frozenset[tuple[str, str]] = frozenset()  # comparisons whose groups differ in code
    paired: bool = True  # False: the runs of a replicate share no randomness
    run_sd: float | None = None  # SD of runs of one group, from a calibration


class Observations(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one source, in the source's order; each group has at most one run per replicate and task."""

    source: str  # a file's name, or what messages say instead
    pair_column: str  # the source's name for a replicate, such as "seed"; "": none, so no runs belong together
    rows: Runs
    run_column: str = ""  # the source's name for the column that pairs or names runs, such as "rng"; "": it has none
    outcome_column: str = ""  # the source's name for the outcome, such as "val_loss"; "": it has none
    notes: tuple[str, ...] = ()  # how the source was read, where that is not obvious; whole sentences
    facts: dict[str, Facts] | None = None  # by task; None: done elsewhere, without records
    repeatable: bool = False  # from one experiment directory with its own plan, which can be launched again or extended
    exploratory: bool = False  # nothing was declared before the runs
    rows_are_runs: bool = False  # the user confirmed that every row is a training run
    paired_by_key: bool = False  # the user gave each outcome under its seed, as a key of a mapping
    partners_left_out: bool = False  # the user said that a seed which only one group has was never run in the other
    table: ItemTable | None = None  # rows of items as they were read; `at_level` makes the rows of them
    items: ItemsBelow | None = None  # the scores below the rows, and their level; None: a row is a run without items
    # By the order of the plan's guardrails: the same runs, with the guarded measure in place of the outcome.
    guardrails: tuple[Runs, ...] = ()
    departures: tuple[str, ...] = ()  # from the planned order of trials, as the source shows; whole sentences
    reading: tuple[str, ...] = ()  # what was read, for the user to check before the answer; whole sentences

    @property
    def groups(self) -> tuple[str, ...]:
        """Groups, in the order of their first rows."""
        return self.rows.group.names

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks, in the order of their first rows; ("",) if there is no task column."""
        if self.table is not None:
            return self.table.tasks
        return self.rows.task.names

    @property
    def numbered(self) -> bool:
        """True if all seeds are whole numbers."""
        return self.rows.replicate.whole

    @property
    def replicates(self) -> tuple[str, ...]:
        """Replicates, sorted by number if all are integers, else by name, so that the order of rows changes nothing."""
        return self.rows.replicate.in_order

    @property
    def rng_seed(self) -> int:
        """Seed of the bootstraps, derived from the outcomes so that equal outcomes give equal bytes."""
        return int.from_bytes(self.rows.digest()[:16], "big")


def replicate_key(name: str) -> str:
    """Return a text that is equal for all spellings of a seed: "7" for "07" and "7.0", and the name for other names."""
    number_match = _WHOLE.fullmatch(name)
    if number_match is None:
        return name
    return str(int(number_match[1]))


def names_items(column: str) -> bool:
    """True if a column of this name probably names items of a run, as prompts: "question", "doc_id", "Episodes"."""
    return _last_word(column) in _ITEM_WORDS


def unit_of(column: str) -> str:
    """Return the word for one item in a column of this name: "question" for "Question_ID", "item" for "id"."""
    word = _last_word(column)
    return word if word in _ITEM_WORDS and word != "doc" else "item"


def _last_word(column: str) -> str:
    """Return the last word of a name, in the singular, without what numbers it; "" if it has none."""
    words = [word for word in re.split(r"[^a-z]+", column.lower()) if word and word not in _NUMBERED]
    return words[-1].removesuffix("s") if words else ""


def item_word(name: str) -> str:
    """Return the word for items that a numbered name begins with: "prompt" for "prompt07"; "" if there is none."""
    word = re.fullmatch(r"([A-Za-z]+)s?[^A-Za-z]*[0-9]+", name)
    if word and names_items(word[1]):
        return word[1].lower().removesuffix("s")
    return ""


def is_integer(text: str) -> bool:
    """True if `text` is a whole number in digits."""
    return text.removeprefix("-").isdecimal() and text.isascii()
