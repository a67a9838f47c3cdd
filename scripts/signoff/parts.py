"""The parts in their order, and what a part has."""

import importlib
from typing import Any, Protocol, cast

from signoff.machine import Machine

NAMES = ("header", "ordered", "tests", "resumed", "precision", "speed", "busy", "memory", "too_large", "shared")
MOST_S = 720  # for all parts together


class Part(Protocol):
    """A module of this package."""

    TITLE: str
    BUDGET_S: int  # on a GPU; a rehearsal has no limit

    def measure(self, machine: Machine) -> dict[str, Any]:
        """Return what was measured, as JSON has it."""

    def problems(self, findings: dict[str, Any]) -> list[str]:
        """Return a line for each thing that is not as it must be."""

    def render(self, findings: dict[str, Any]) -> list[str]:
        """Return the lines of the part's section of the page."""


def part(name: str) -> Part:
    """Return one of NAMES."""
    return cast(Part, importlib.import_module(f"signoff.{name}"))
