"""A gate that has begun: what is done of it, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from esper_ab.contracts.shell_command import shell_command
from esper_ab.gate.budget import REPORT_S
from esper_ab.gate.question import GateQuestion
from esper_ab.gate.spent import run_seconds, spent_seconds
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.lock import holder


@dataclass(frozen=True, kw_only=True)
class BegunGate:
    """The state of a gate's directory."""

    directory: Path
    history: History
    holder: str  # the process that runs it now; "": none
    minutes: float  # for everything
    spent_s: float  # in all sittings before
    passed_s: float  # since this command began

    @property
    def left_s(self) -> float:
        """The seconds left for runs."""
        return 60.0 * self.minutes - self.spent_s - self.passed_s - REPORT_S

    @property
    def pair_s(self) -> float:
        """The seconds that a pair takes."""
        return max(run_seconds(self.history), self.history.plan.step_s)

    @property
    def pairs(self) -> int:
        """The complete pairs."""
        return sum(
            all(self.history.runs[spec.ref.name].evaluation is not None for spec in block.runs)
            for block in self.history.blocks
        )

    @property
    def state(self) -> Literal["ended", "running", "out of time", "interrupted"]:
        """What became of it."""
        if self.holder:
            return "running"
        if self.history.finished:
            return "ended"
        return "out of time" if self.left_s <= self.pair_s else "interrupted"

    @property
    def lines(self) -> Iterator[str]:
        """What is done, and what the gate's command would do."""
        yield f"This gate has begun already, in {self.directory}."
        spent_words = f"{self.spent_s / 60.0:.1f} of {self.minutes:g} min"
        yield f"Done: {self.pairs} of at most {self.history.replicates} pairs, in {spent_words}."
        if self.state == "running":
            status = shell_command("status", self.directory, "--follow")
            yield f"It is running ({self.holder}); `{status}` shows how far it is."
        else:
            yield _NEXT[self.state]

    @property
    def document(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "directory": str(self.directory),
            "state": self.state,
            "pairs": self.pairs,
            "most_pairs": self.history.replicates,
            "seconds": round(self.spent_s, 1),
            "minutes": self.minutes,
        }


_NEXT = {
    "ended": "It has ended: without --dry-run, the command shows its answer and trains nothing.",
    "out of time": "Its minutes have ended: with more of them (--minutes), the command goes on with the same plan.",
    "interrupted": "Without --dry-run, the command goes on with it until its claim is decided or the minutes end.",
}


def begun_gate(question: GateQuestion, directory: Path, passed_s: float) -> BegunGate:
    """Read the state of a gate that has begun; `passed_s`: the seconds since this command began."""
    present_holder = holder(directory)
    return BegunGate(
        directory=directory,
        history=load(directory).history,
        holder="" if present_holder is None else str(present_holder),
        minutes=question.minutes,
        spent_s=spent_seconds(directory),
        passed_s=passed_s,
    )
