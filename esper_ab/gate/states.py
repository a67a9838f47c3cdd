"""The two states of the code that a gate compares, as commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from esper_ab.code_trees.branching import beginning_of
from esper_ab.code_trees.sealing import states_now
from esper_ab.contracts.code_state import StateOfCode
from esper_ab.contracts.errors import UsageError
from esper_ab.gate.asked import spelled_as_file
from esper_ab.gate.question import BASE, HEAD, GateQuestion


@dataclass(frozen=True, kw_only=True)
class GateStates:
    """The states as the user names them, and as they are now."""

    named: dict[str, str]  # by group, as `--code` takes them
    base: StateOfCode
    head: StateOfCode

    @property
    def sealed(self) -> dict[str, str]:
        """The commit with the files of each state, by group."""
        return {BASE: self.base.sealed, HEAD: self.head.sealed}

    @property
    def are_one(self) -> bool:
        """Whether both have the same files."""
        return (self.base.sealed, self.base.inside) == (self.head.sealed, self.head.inside)


def find_states(question: GateQuestion, unsealed: Sequence[Path]) -> GateStates:
    """Return both states; UsageError if one does not exist.

    `unsealed`: folders and files that are no part of a state, unless they are tracked.
    """
    with spelled_as_file():
        base_text = beginning_of(question.head, Path.cwd()) if question.base is None else question.base
        state_texts = {BASE: base_text, HEAD: question.head}
        base, head = states_now(state_texts, Path.cwd(), unsealed)
    return GateStates(named=state_texts, base=base, head=head)


def find_two_states(question: GateQuestion, unsealed: Sequence[Path]) -> GateStates:
    """Return both states; UsageError if one does not exist, or if they are one. `unsealed`: as in `find_states`."""
    states = find_states(question, unsealed)
    if states.are_one:
        beginning = ", where head left the default branch" if question.base is None else ""
        raise UsageError(
            f"base and head have the same files: {states.base.words}{beginning}; name another base, such as HEAD~1"
        )
    return states
