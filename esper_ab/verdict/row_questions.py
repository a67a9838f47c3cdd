"""What only the user can say about rows of unknown origin: whether they are runs, and which outcomes are better.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from esper_ab.contracts.errors import OpenQuestion, SettingName, Unanswered, UsageError
from esper_ab.design.design import Contrast
from esper_ab.verdict.copies import ASKED
from esper_ab.verdict.observations import Observations, names_items
from esper_ab.verdict.pairing import Pairing
from esper_ab.verdict.rows import copied, sorted_by_replicate

# Words in the names of outcomes for which lower is usually better.
_LOWER = frozenset(
    {
        "loss",
        "losses",
        "error",
        "errors",
        "err",
        "regret",
        "perplexity",
        "ppl",
        "time",
        "times",
        "runtime",
        "walltime",
        "seconds",
        "secs",
        "cost",
        "costs",
        "latency",
        "duration",
        "mse",
        "rmse",
        "mae",
        "nll",
        "wer",
        "cer",
    }
)
_MOST_COPIES = 3  # sets of copies that a question names
_RUNS = (SettingName("rows", "runs"),)
RUNS_OR_ITEMS = (SettingName("rows", "items"), SettingName("rows", "runs"))


def refuse_for_plan(error: Unanswered) -> NoReturn:
    """Raise a question about rows again with the ways out that a plan has: it knows no rows, but names of columns."""
    if all(question.answers != RUNS_OR_ITEMS for question in error.questions):
        raise error
    doubts = "; ".join(question.about for question in error.questions)
    raise UsageError(
        f"{error.source}: {doubts}; if rows are items, name their column: ",
        SettingName("columns", {"item": "NAME"}),
        "; if they are runs, give each a seed of the plan",
    ) from None


def item_questions(observations: Observations, rows: str | None) -> Iterator[OpenQuestion]:
    """Yield a question if the column that names or pairs runs is called like the items of a run."""
    column = observations.run_column
    if observations.items is None and names_items(column) and rows != "runs":
        yield OpenQuestion(
            f"the column {column} names items of a run, not training runs, so each row may be an item, or a training "
            "run of its own",
            RUNS_OR_ITEMS,
        )


def direction_questions(column: str, options: Mapping[str, object]) -> Iterator[OpenQuestion]:
    """Yield a question if `options` has no direction, and the outcome's name suggests that lower is better.

    `column`: the source's name for the outcome; "": there is no source yet.
    """
    if options.get("better"):
        return
    for name in (column, str(options.get("label", ""))):
        if _lower_is_likely(name):
            yield OpenQuestion(
                f"the outcome is called {name}, so it is unclear whether lower or higher is better",
                (SettingName("better", "lower"), SettingName("better", "higher")),
            )
            return


def _lower_is_likely(name: str) -> bool:
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    return not _LOWER.isdisjoint(words) or "steps to" in " ".join(words)


def pairing_questions(
    observations: Observations,
    pairings: Mapping[Contrast, Pairing],
    replicates: Sequence[str],
    *,
    pairing_is_declared: bool,
) -> Iterator[OpenQuestion]:
    """Yield a question if half of the outcomes of a group or more are copies, and one if rows were sorted.

    `pairing_is_declared`: the user said whether runs form pairs.
    """
    if not observations.rows_are_runs and observations.items is None:
        texts = _half_copies(pairings)
        if texts:
            named_copies = "; ".join(texts[:_MOST_COPIES])
            yield OpenQuestion(
                f"{named_copies}; remove the copies, unless each row is a training run of its own", _RUNS
            )
    if not pairing_is_declared and observations.items is None:
        for contrast, pairing in pairings.items():
            text = sorted_by_replicate(contrast, pairing, replicates)
            if text:
                yield OpenQuestion(text, (SettingName("unpaired"), SettingName("paired")))
                return


def _half_copies(pairings: Mapping[Contrast, Pairing]) -> list[str]:
    """Return a text for each set of copies that is half of the outcomes of a group or more, without repetitions."""
    texts: dict[str, None] = {}
    for contrast, pairing in pairings.items():
        for text, copy_count in copied(contrast, pairing, ASKED):
            if copy_count:
                texts[text] = None
    return list(texts)
