"""Three questions about comparing policies, each with an experiment and a recommendation.

1. Lockstep or independent episodes? The same replicates both ways: records, time, waiting.
2. Shared or separate observation normaliser? The same replicates both ways: outcome, spread, distance.
3. Cross-evaluation? What every reward mode says of every group's policies, beside the outcome.

    scripts/open_questions [--out FOLDER]       run what is missing in FOLDER (experiments/open-questions), then write
                                                docs/evidence/open-questions.md and benchmarks/open-questions.json
    scripts/open_questions --timing-only        question 1 alone, anew: on a machine that is otherwise idle
    scripts/open_questions --table              write the page from the numbers that are there
"""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from marks import between
from questions import crossing, lockstep, normaliser
from questions.experiments import MODES, REPEATS, ROOT, TIMING, TRAINING

PAGE, DATA = ROOT / "docs/evidence/open-questions.md", ROOT / "docs/evidence/benchmarks/open-questions.json"
QUESTIONS = {"lockstep": lockstep, "normaliser": normaliser, "cross-evaluation": crossing}


def measured(folder: Path, names: list[str]) -> dict[str, Any]:
    """The numbers of these questions, each with the machine that they come from."""
    return {name: QUESTIONS[name].measure(folder) | {"machine": describe()} for name in names}


def write(found: dict[str, Any]) -> None:
    """The page and its numbers."""
    page = PAGE.read_text(encoding="utf-8")
    for name, question in QUESTIONS.items():
        page = between(page, name, _wrapped(question.table(found[name])))
    page = between(page, "budget", f"```sh\n{_command(TIMING)}\n{_command(TRAINING)}\n```")
    page = between(page, "machine", _machine(found["lockstep"]["machine"]))
    PAGE.write_text(page, encoding="utf-8")
    DATA.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _wrapped(text: str) -> str:
    """Paragraphs in lines of 120 characters at most; tables as they are."""
    return "\n".join(line if line.startswith("|") else textwrap.fill(line, 120) for line in text.splitlines())


def _command(arguments: tuple[str, ...]) -> str:
    """As one would type it, on lines of at most 116 characters."""
    lines, line = [], "esper-ab launch"
    for argument in arguments:
        if len(line) + len(argument) > 112:
            lines.append(line + " \\")
            line = "   "
        line += f" {argument}"
    return "\n".join([*lines, line])


def _machine(machine: dict[str, Any]) -> str:
    load = machine["load_average"]
    return f"Question 1: {machine['processor']}, {machine['cores']} cores, load average {load:.1f} after it."


def main() -> None:
    """Run, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "experiments" / "open-questions", help="where they are "
                        "kept")  # fmt: skip
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--timing-only", action="store_true", help="question 1 alone, anew")
    only.add_argument("--table", action="store_true", help="run nothing")
    asked = parser.parse_args()
    folder = asked.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    known: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    if asked.timing_only:
        for mode in MODES:
            for repeat in range(REPEATS):
                shutil.rmtree(folder / f"{mode}-{repeat}", ignore_errors=True)
    names = [] if asked.table else ["lockstep"] if asked.timing_only else list(QUESTIONS)
    known |= measured(folder, names)
    missing = [name for name in QUESTIONS if name not in known]
    if missing:
        parser.error(f"no numbers yet of {', '.join(missing)}: call it without arguments first")
    write(known)
    for name, question in QUESTIONS.items():
        print(f"\n{question.table(known[name])}" if name in names or asked.table else f"\n{name}: as before")


if __name__ == "__main__":
    main()
