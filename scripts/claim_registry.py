"""The registries of claims, and what each claim's folder holds, for scripts/claims."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = ROOT / "docs" / "evidence"
ALPHA = 0.05  # the chance of any false verdict over a whole registry


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
    def picture(self) -> Path:
        """The picture of all answers, which the page shows."""
        return self.folder / "answers.svg"

    @property
    def alpha(self) -> float:
        """The share of a claim."""
        return ALPHA / self.most_claims

    @property
    def claims(self) -> list[StoredClaim]:
        """The claims in the order of their names."""
        return [StoredClaim(path.parent) for path in sorted(self.folder.glob("*/claim.toml"))]

    @property
    def corrections(self) -> dict[str, dict[str, str]]:
        """What the sources of claims say, by name, where a sealed claim.toml says it wrongly or unfairly."""
        path = self.folder / "corrections.toml"
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


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
