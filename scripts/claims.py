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
import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import ConditionNotMet
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.verdict import Verdict

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = ROOT / "docs" / "evidence"
BEGIN = "<!-- claims -->\n"
END = "<!-- /claims -->"
KEPT_FILES = ("verdict.json", "summary.txt")
ALPHA = 0.05  # the chance of any false verdict over a whole registry
OUTPUT_DIR = ROOT / "experiments"
RELATIONS = ("better-than", "worse-than", "equivalent-to")
IN_MARGINS = ("estimate", "low", "high")
NO_DIFFERENCE = (Verdict.EQUIVALENT, Verdict.IDENTICAL)
PROGRAM = "esper-ab"
# The program's folder comes first, so that commands in stored texts read as they are typed.
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


class Refused(Exception):
    """A claim that cannot be sealed or run as asked; one line says why."""


@dataclass(frozen=True)
class Registry:
    """Claims that share one error rate, with a page that lists them."""

    folder: Path
    most_claims: int  # each has an equal share of the error rate
    verdicts_header: str

    @property
    def page(self) -> Path:
        """The page with the table."""
        return self.folder / "README.md"

    @property
    def alpha(self) -> float:
        """The share of a claim."""
        return ALPHA / self.most_claims

    @property
    def claims(self) -> list[StoredClaim]:
        """The claims in the order of their names."""
        return [StoredClaim(path.parent) for path in sorted(self.folder.glob("*/claim.toml"))]


REGISTRIES = (
    Registry(EVIDENCE / "claims", most_claims=20, verdicts_header="on each task"),
    Registry(EVIDENCE / "studies", most_claims=10, verdicts_header="verdicts"),
)


@dataclass(frozen=True)
class StoredClaim:
    """One folder of a registry."""

    folder: Path

    @property
    def name(self) -> str:
        """The name of the folder, and of the experiment."""
        return self.folder.name

    @property
    def file(self) -> Path:
        """The question, with all settings."""
        return self.folder / "claim.toml"

    @property
    def settings(self) -> dict[str, Any]:
        """The content of claim.toml."""
        return tomllib.loads(self.file.read_text(encoding="utf-8"))

    @property
    def condition(self) -> tuple[str, str, str]:
        """The two groups, and between them the relation with which the sentence holds, as in --fail-unless."""
        first_group, relation, second_group = self.settings["claim"]["holds_if"].split()
        return first_group, relation, second_group

    @property
    def sha256(self) -> str:
        """The digest of all files that decide what is trained: claim.toml, modules beside it, and a shared trainer."""
        files = [self.file, *self.folder.glob("*.py")]
        trainer = self.settings.get("trainer", "").partition(":")[0]
        if trainer.endswith(".py"):
            files.append((self.folder / trainer).resolve())
        digest = hashlib.sha256()
        for path in sorted({*files}):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()

    def stored(self, name: str) -> dict[str, Any] | None:
        """Return the content of seal.json, result.json or verdict.json; None if it does not exist yet."""
        path = self.folder / name
        if not path.exists():
            return None
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content

    def store(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON file into the folder."""
        (self.folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


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
    """Return when the experiments in a directory began and ended, what they cost, and where they ran."""
    entries = []
    for journal in sorted(directory.rglob("events.jsonl")):
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


@dataclass(frozen=True)
class Judged:
    """The comparisons of an answer: a claim's own, on its only task or on the mean of several, and others."""

    own: dict[str, Any]
    on_tasks: list[dict[str, Any]]  # the same groups on each of several tasks
    others: list[dict[str, Any]]  # other groups, on the only task

    @classmethod
    def of(cls, claim: StoredClaim, verdict_json: dict[str, Any]) -> Judged:
        """Find the claim's comparison in a verdict.json of one task or of several."""
        comparisons: list[dict[str, Any]] = verdict_json.get("judged", verdict_json)["comparisons"]
        first_group, _, second_group = claim.condition
        (own,) = (
            comparison
            for comparison in comparisons
            if (comparison["a"], comparison["b"]) == (first_group, second_group)
            and comparison.get("task", MEAN) == MEAN
        )
        rest = [comparison for comparison in comparisons if comparison is not own]
        if "judged" in verdict_json:
            return cls(own, rest, [])
        return cls(own | {key: own[key] / own["margin"] for key in IN_MARGINS if own[key] is not None}, [], rest)

    @property
    def verdicts(self) -> str:
        """The verdicts on each task, or of all comparisons on the only one."""
        if self.on_tasks:
            names = [(comparison["task"].removeprefix("gym:"), comparison) for comparison in self.on_tasks]
        else:
            names = [(f"{one['a']} - {one['b']}", one) for one in (self.own, *self.others)]
        return "; ".join(f"{name} {comparison['verdict']}" for name, comparison in names)


def answer_to(claim: StoredClaim, conditions: dict[str, bool], over_all: str, on_tasks: Iterable[str]) -> str:
    """Say what an answer says about the sentence: the conditions that it meets, and its verdicts."""
    _, relation, _ = claim.condition
    if conditions[relation]:
        return "holds"
    if conditions["equivalent-to"]:
        return "no difference that matters"
    if conditions["better-than"] or conditions["worse-than"]:
        return "a difference" if relation == "equivalent-to" else "the opposite holds"
    if {Verdict.BETTER, Verdict.WORSE} <= {*on_tasks}:
        return "depends on the task"
    return "no difference on the mean" if over_all in NO_DIFFERENCE else "open"


def row(claim: StoredClaim) -> str:
    """Return the line of a claim in the table."""
    about = claim.settings["claim"]
    sealed = claim.stored("seal.json")
    sealed_on = sealed["sealed"][:10] if sealed else ""
    cells = [f"[{about['sentence']}]({claim.name}/summary.txt)"]
    verdict_json = claim.stored("verdict.json")
    result = claim.stored("result.json")
    if verdict_json is None or result is None:
        cells = [f"[{about['sentence']}]({claim.name}/claim.toml)", "sealed, not run" if sealed else "not sealed"]
        return f"| {' | '.join([*cells, '', '', '', '', sealed_on, about['source_says']])} |"
    judged = Judged.of(claim, verdict_json)
    on_tasks = [comparison["verdict"] for comparison in judged.on_tasks]
    answer = answer_to(claim, result["conditions"], judged.own["verdict"], on_tasks)
    cells += [
        f"**{answer}**",
        effect_of(judged.own),
        judged.verdicts,
        str(judged.own["used"]),
        str(result["core_minutes"]),
        sealed_on,
        about["source_says"],
    ]
    return f"| {' | '.join(cells)} |"


def effect_of(comparison: dict[str, Any]) -> str:
    """Return a difference in margins with its interval; "" if there is none."""
    if comparison["low"] is None:
        return ""
    return f"{comparison['estimate']:+.2f} [{comparison['low']:+.2f}, {comparison['high']:+.2f}]"


def table(registry: Registry) -> list[str]:
    """Return the table of all claims of a registry."""
    verdicts = registry.verdicts_header
    return [
        f"| claim | answer | difference, in margins | {verdicts} | seeds | core minutes | sealed | the sources |",
        "|---|---|---|---|---|---|---|---|",
        *map(row, registry.claims),
    ]


def write_page(registry: Registry) -> None:
    """Write the table into the page."""
    head, _, rest = registry.page.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    registry.page.write_text(head + BEGIN + "\n".join(table(registry)) + "\n" + END + tail, encoding="utf-8")


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
            print("\n\n".join("\n".join(table(registry)) for registry in REGISTRIES))
    except Refused as refusal:
        print(refusal, file=sys.stderr)
        return 2
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
