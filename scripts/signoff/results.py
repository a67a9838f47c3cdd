"""The results of a sign-off: one JSON, written after each part, from which the page is made."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signoff.parts import NAMES, part

_MARK = "sign-off"  # around what no person has written
SHARED_KEYS = ("gpus", "torch", "driver", "sources")  # what parts of one sign-off share


@dataclass
class Results:
    """What is known so far: for each part "seconds", "found", "problems", "section"."""

    json_file: Path
    page_file: Path
    real: bool
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """The parts that have not run."""
        return [name for name in NAMES if name not in self.parts]

    @property
    def passed(self) -> bool:
        """True if every part has run and none has a problem."""
        return not self.missing and not any(results_of_part["problems"] for results_of_part in self.parts.values())

    def restore(self, first_part: int) -> str:
        """Take the parts before number `first_part` from the file; return why they cannot be used, "" if they can."""
        if not self.json_file.exists():
            return f"there is no {self.json_file}: start without --part"
        stored = json.loads(self.json_file.read_text())["parts"]
        for key in SHARED_KEYS:
            own_value, stored_value = (parts["header"]["found"].get(key) for parts in (self.parts, stored))
            if own_value != stored_value:
                return f"{self.json_file} has other {key} ({stored_value}, now {own_value}): start without --part"
        for name in NAMES[1 : first_part - 1]:
            if name in stored:
                self.parts[name] = stored[name]
        return ""

    def write(self) -> None:
        """Write both files."""
        self.json_file.parent.mkdir(parents=True, exist_ok=True)
        document = {"real": self.real, "passed": self.passed, "missing": self.missing, "parts": self.parts}
        draft = self.json_file.with_suffix(".draft")
        draft.write_text(json.dumps(document, indent=1) + "\n")
        draft.replace(self.json_file)
        self.page_file.write_text("\n".join(self.page()) + "\n")

    def page(self) -> list[str]:
        """Return the lines of the page."""
        header = self.parts["header"]["found"]
        names = [gpu["name"] for gpu in header["gpus"]] if header else []
        device = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
        lines = [f"# The sign-off on {device}", "", f"<!-- {_MARK} -->"]
        if not self.real:
            lines += ["**A rehearsal on the test device. Nothing on this page was measured on a GPU.**", ""]
        lines += [f"Written by `scripts/sign_off`. {self._verdict()}", ""]
        for number, name in enumerate(NAMES, 1):
            if name in self.parts:
                lines += self._section(number, name)
        return [*lines, f"<!-- /{_MARK} -->"]

    def _verdict(self) -> str:
        if self.passed:
            return "PASSED."
        failed_parts = [part(name).TITLE for name, results_of_part in self.parts.items() if results_of_part["problems"]]
        reasons = [f"with problems: {', '.join(failed_parts)}"] if failed_parts else []
        reasons += [f"not run: {', '.join(self.missing)}"] if self.missing else []
        return f"FAILED; {'; '.join(reasons)}."

    def _section(self, number: int, name: str) -> list[str]:
        results_of_part = self.parts[name]
        problems = [f"- **Problem**: {problem}" for problem in results_of_part["problems"]]
        return [
            f"## {number}. {part(name).TITLE}",
            "",
            *results_of_part["section"],
            *([""] if results_of_part["section"] else []),
            *problems,
            *([""] if problems else []),
            f"{results_of_part['seconds']:.0f} s.",
            "",
        ]
