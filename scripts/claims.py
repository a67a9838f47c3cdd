"""Seal, run and list the claims of two registries: docs/evidence/claims, of the field, and docs/evidence/studies, of
this project. A claim is a folder with what `esper-ab launch` reads and writes.

    scripts/claims seal [NAME…]    store the plan of every claim that has none, before anything is trained
    scripts/claims run [NAME…]     train the sealed claims that have no answer, or those named, or go on with them, and
                                   store their answers
    scripts/claims page            write the pages that list all of them
    scripts/claims                 print these lists

A claim that is sealed stays as it is: `run` refuses another claim.toml. `--output-dir` has the experiments, in a folder
for each registry, and their directories are resumed; only their answers are stored here. One claim is repeated without
this script: `esper-ab launch docs/evidence/claims/NAME/claim.toml --rng-seed N`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from claim_pages import table, totals, write_page
from claim_registry import REGISTRIES, ROOT, StoredClaim

from esper_ab.contracts.errors import ConditionNotMet

KEPT_FILES = ("verdict.json", "summary.txt")
OUTPUT_DIR = ROOT / "experiments"
RELATIONS = ("better-than", "worse-than", "equivalent-to")
PROGRAM = "esper-ab"
# The program's folder comes first, so that commands in stored texts read as they are typed.
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


class Refused(Exception):
    """A claim that cannot be sealed or run as asked; one line says why."""


def launched(claim: StoredClaim, *words: str) -> str:
    """Run `esper-ab launch claim.toml` with further words and return its output; its errors reach the terminal."""
    command = (PROGRAM, "launch", str(claim.file.relative_to(ROOT)), "--name", claim.name, *words)
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True).stdout


def estimated_core_minutes(plan: dict[str, Any]) -> float:
    """Return the core minutes of all parts of a plan in the form of `launch --dry-run --json`."""
    seconds = 0.0
    for part in plan.get("parts", [plan]):
        devices = {device for lane in part["plan"]["lanes"] for device in lane["devices"]}
        seconds += part["estimate"]["duration_s"] * len(devices)
    return seconds / 60.0


def seal(claim: StoredClaim) -> None:
    """Store the plan of a claim in words, its digests and its estimate."""
    if claim.stored("seal.json") is not None:
        return
    plan = json.loads(launched(claim, "--dry-run", "--json"))
    core_minutes = estimated_core_minutes(plan)
    budget = claim.settings["claim"]["core_minutes"]
    if core_minutes > budget:
        raise Refused(f"{claim.name}: the plan takes {core_minutes:.1f} core minutes, more than its budget of {budget}")
    (claim.folder / "plan.txt").write_text(below_root(launched(claim, "--dry-run", "--verbose")), encoding="utf-8")
    claim.store(
        "seal.json",
        {
            "sealed": datetime.now(UTC).isoformat(timespec="seconds"),
            "claim_sha256": claim.sha256,
            "plan_sha256": plan.get("sha256") or plan["plan"]["digest"],
            "estimated_core_minutes": round(core_minutes, 1),
        },
    )
    print(f"{claim.name}: sealed")


def run(claim: StoredClaim, output_dir: Path) -> None:
    """Train a sealed claim to the end of its plan, or go on with it, and store its answer and what it cost."""
    sealed = claim.stored("seal.json")
    if sealed is None:
        raise Refused(f"{claim.name}: not sealed; run scripts/claims seal {claim.name} first")
    if sealed["claim_sha256"] != claim.sha256:
        raise Refused(f"{claim.name}: its files differ from the sealed ones; a sealed claim stays as it is")
    folder = output_dir / claim.folder.parent.name
    directory = folder / claim.name
    words = ["launch", str(claim.file), "--name", claim.name, "--output-dir", str(folder), "--quiet"]
    if directory.exists():
        words = ["resume", str(directory)]
    subprocess.run((PROGRAM, *words), cwd=ROOT, env=ENVIRONMENT, check=True)
    store_answer(claim, directory)


def store_answer(claim: StoredClaim, directory: Path) -> None:
    """Store the answer of an experiment and what it cost. The report is built anew, with a path below the root."""
    relative_directory = Path(os.path.relpath(directory, ROOT))
    conditions = conditions_met(claim, relative_directory)
    for name in KEPT_FILES:
        text = (directory / name).read_text(encoding="utf-8")
        (claim.folder / name).write_text(below_root(text), encoding="utf-8")
    claim.store("result.json", result_of(directory) | {"conditions": conditions})


def below_root(text: str) -> str:
    """Return a text of the product without the folder of this checkout, in which a claim's own modules are."""
    return text.replace(f"{ROOT}/", "")


def conditions_met(claim: StoredClaim, directory: Path) -> dict[str, bool]:
    """Ask the product, for each relation of the claim's two groups, whether its answer supports it."""
    first_group, own_relation, second_group = claim.condition
    met = {}
    for relation in dict.fromkeys((*RELATIONS, own_relation)):
        words = ("report", str(directory), "--quiet", "--fail-unless", f"{first_group} {relation} {second_group}")
        status = subprocess.run(
            (PROGRAM, *words), cwd=ROOT, env=ENVIRONMENT, capture_output=True, check=False
        ).returncode
        if status not in (0, ConditionNotMet.exit_code):
            raise Refused(f"{claim.name}: esper-ab {' '.join(words)} ended with status {status}")
        met[relation] = status == 0
    return met


def result_of(directory: Path) -> dict[str, Any]:
    """Return when an experiment, or each part of one, began and ended, what it cost, and where it ran.

    Experiments that its own runs launch lie deeper, and are part of their time.
    """
    entries = []
    for journal in sorted([*directory.glob("events.jsonl"), *directory.glob("*/events.jsonl")]):
        entries += [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    began = min(entries, key=lambda entry: str(entry["t"]))
    return {
        "began": began["t"],
        "ended": max(entry["t"] for entry in entries),
        "runs": sum(entry["event"]["kind"] == "evaluation" for entry in entries),
        "core_minutes": round(core_seconds(entries) / 60.0, 1),
        "processor": began["event"]["machine"]["processor"],
        "versions": began["event"]["versions"],
        "commit": began["event"]["code"].get("commit", ""),
    }


def core_seconds(entries: Iterable[dict[str, Any]]) -> float:
    """Return the seconds that runs spent in warm-ups, episodes and evaluations."""
    seconds = 0.0
    for entry in entries:
        event = entry["event"]
        seconds += event.get("warm_up_s", 0.0) + event.get("record", {}).get("timing", {}).get("total_s", 0.0)
    return seconds


def chosen_claims(names: Sequence[str]) -> list[StoredClaim]:
    """Return the claims with these names, or all claims; Refused if there is none with a name."""
    claims = [claim for registry in REGISTRIES for claim in registry.claims]
    if missing := {*names} - {claim.name for claim in claims}:
        folders = " or ".join(str(registry.folder.relative_to(ROOT)) for registry in REGISTRIES)
        raise Refused(f"no claim {min(missing)!r} in {folders}")
    return [claim for claim in claims if not names or claim.name in names]


def main() -> int:
    """Carry out the command; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=["list", "seal", "run", "page"], default="list")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--output-dir", type=Path, default=OUTPUT_DIR)
    options = parser.parse_args()
    try:
        chosen = chosen_claims(options.names)
        if options.command == "seal":
            for claim in chosen:
                seal(claim)
        elif options.command == "run":
            for claim in chosen:
                if options.names or claim.stored("result.json") is None:
                    run(claim, options.output_dir)
        elif options.command == "page":
            for registry in REGISTRIES:
                write_page(registry)
        else:
            print("\n\n".join("\n".join([*table(registry), "", totals(registry)]) for registry in REGISTRIES))
    except Refused as refusal:
        print(refusal, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
