"""Single flipped bits in every kind of file of an experiment directory, and what every command says of them.

    scripts/flips [--flips 200] [--rng-seed 0] [--only KIND]

Two tiny experiments are trained, one of which is left with runs to do. A copy of one gets one bit flipped, and each
command that reads such a file is called on it. What it comes to is one of: as with the intact file; the damage named,
with exit status 2, 4 or 5; or wrong: a traceback, another exit status, or another result with nothing said.

Commands that take seconds are called on every twentieth flip only. Table in docs/evidence/faults.md, numbers
into docs/evidence/benchmarks/flips.json. Exit status 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from marks import between  # noqa: E402
from support.in_process import esper_ab  # noqa: E402
from support.patience import TookTooLong, within  # noqa: E402

from esper_ab.analysis.trained_by import result_hash  # noqa: E402
from esper_ab.journal.events import RunEvaluated  # noqa: E402
from esper_ab.journal.file import JOURNAL_NAME, read  # noqa: E402
from esper_ab.journal.load import load  # noqa: E402

PAGE, DATA, MARK = ROOT / "docs/evidence/faults.md", ROOT / "docs/evidence/benchmarks/flips.json", "flipped bits"
NAMED = {2, 4, 5}  # refused, a worker failed, damaged
_PATIENCE_S = 120
_TINY = (
    "--groups", "a=shaped,b=./mine.py:reward", "--task", "synthetic", "--seeds", "2", "--episodes", "2",
    "--steps", "3", "--n-envs", "1", "--eval-episodes", "1", "--set", "policy.hidden=8", "--set", "ppo.epochs=1",
    "--set", "ppo.minibatches=1", "--slots", "early", "--devices", "cpu:0,cpu:1", "--launcher", "inline", "--quiet",
)  # fmt: skip
_GROUPS = 2
_REWARD = "import numpy as np\n\ndef reward(facts, settings):\n    return np.where(facts.op == 0, 0.0, -0.5)\n"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """`files`: a pattern below the experiment directory. `half`: of the experiment that has runs to do.

    `commands`: with EXPERIMENT, OTHER (an intact one), FOLDER and FILE in them. `slow`: those that take seconds.
    """

    files: str
    commands: tuple[tuple[str, ...], ...]
    slow: tuple[tuple[str, ...], ...] = ()
    half: bool = False


_REPORT, _CHECK = ("report", "EXPERIMENT"), ("tidy --check", "EXPERIMENT")
_LIST, _STATUS = ("list", "FOLDER"), ("status", "EXPERIMENT")
_COMPARE = ("compare", "EXPERIMENT", "OTHER")
_RESUME = ("resume", "EXPERIMENT", "--launcher", "inline", "--allow-changed-code", "--quiet")
_QUERY = ("query", "EXPERIMENT", "SELECT run, episode, held_out_accuracy FROM envs ORDER BY ALL")
KINDS = {
    "events.jsonl": Kind(files="events.jsonl", commands=(
        _REPORT, _STATUS, _LIST, _CHECK, _QUERY, _COMPARE, ("export", "EXPERIMENT", "--out", "exported", "--force"),
        ("resume", "EXPERIMENT", "--seeds", "4", "--dry-run"), ("logs", "EXPERIMENT"),
    )),
    "experiment.toml": Kind(files="experiment.toml", commands=(("launch", "FILE"), _CHECK, _COMPARE)),
    "config.toml": Kind(files="runs/*/config.toml", commands=(("launch", "FILE"), _CHECK)),
    "policy": Kind(files="policies/a/0.pt", commands=(_CHECK, ("evaluate", "FILE"))),
    "verdict.json": Kind(files="verdict.json", commands=(_LIST,), slow=(_REPORT,)),
    "summary.txt": Kind(files="summary.txt", commands=(_LIST, _CHECK), slow=(_REPORT,)),
    "events.jsonl, runs to do": Kind(files="events.jsonl", half=True, commands=(_RESUME,)),
    "copy of a reward": Kind(files="rewards/*/*.py", half=True, commands=(_CHECK,), slow=(_RESUME,)),
    "checkpoint": Kind(files="checkpoints/*/1/*.pt", half=True, commands=(_CHECK,), slow=(_RESUME,)),
    ".lock": Kind(files=".lock", half=True, commands=(_STATUS, _LIST, _CHECK), slow=(_RESUME,)),
}  # fmt: skip
_SLOW = 20  # flips for which slow commands are called once


@dataclass(frozen=True)
class Answer:
    """What a command came to: exit status, what it says on stdout, what it says of an error."""

    status: int
    told: str
    error: str


def ask(command: tuple[str, ...], places: dict[str, str]) -> Answer:
    """The command's answer, with places by their names and without what every call has anew."""
    words = [places.get(word, word) for word in command]
    try:
        with within(_PATIENCE_S):
            status, told, error = _called(words, Path(places["FOLDER"]).parent)
    except TookTooLong:
        return Answer(-1, "", f"no answer after {_PATIENCE_S} s")
    except Exception as bug:  # noqa: BLE001  what a user would see as a traceback
        return Answer(1, "", f"Traceback: {type(bug).__name__}: {bug}")
    for place, path in sorted(places.items(), key=lambda item: -len(item[1])):
        told, error = told.replace(path, place), error.replace(path, place)
    return Answer(status, _timeless(told), error)


def _called(words: list[str], folder: Path) -> tuple[int, str, str]:
    if words[0] == "launch":
        return _settings(Path(words[1]))
    done = esper_ab(*words[0].split(), *words[1:], folder=folder)
    if words[0] == "resume" and not done.returncode:  # what it prints tells of the way, the hash of what it came to
        return 0, result_hash(load(Path(words[1])).history), done.stderr
    return done.returncode, done.stdout, done.stderr


def _settings(file: Path) -> tuple[int, str, str]:
    """What `launch` makes of a file, before it looks at the machine."""
    from esper_ab.contracts.errors import UsageError
    from esper_ab.settings.parse import parse
    from esper_ab.settings.request import read_toml, request

    alone = file.name == "config.toml"  # of one run: it takes a second group to be launched
    groups = (file.parent.name.partition("-")[0], "wait") if alone else ()
    try:
        return 0, repr(parse(request(read_toml(file), groups=groups))), ""
    except UsageError as error:
        return 2, "", f"error: {error}"


def _timeless(told: str) -> str:
    told = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+\d\d:\d\d|Z)?", "TIME", told)
    return re.sub(r"\b\d+(\.\d+)? (ms|s|min)\b", "DURATION", told)


def verdict_of(found: Answer, intact: Answer) -> str:
    """How it counts: "as intact", "named" or "wrong"."""
    if "Traceback" in found.error + found.told or found.status not in NAMED | {0}:
        return "wrong"
    if (found.status, found.told) == (intact.status, intact.told):
        return "as intact"
    said = any(word in (found.told + found.error).lower() for word in ("damage", "unfinished line", "error: "))
    return "named" if found.status in NAMED or said else "wrong"


def flipped(path: Path, rng: random.Random) -> str:
    """Flip one bit of the file; where it was."""
    data = bytearray(path.read_bytes())
    at, bit = rng.randrange(len(data)), rng.randrange(8)
    data[at] ^= 1 << bit
    path.write_bytes(data)
    return f"byte {at}, bit {bit}"


def make(folder: Path) -> None:
    """`whole`, finished; `half`, without the evaluations of the second replicate; `other`, to be compared with."""
    (folder / "mine.py").write_text(_REWARD)
    for name in ("whole", "other"):
        done = esper_ab("launch", *_TINY, "--name", name, "--output-dir", folder, folder=folder)
        if done.returncode:
            raise SystemExit(f"the undisturbed experiment failed: {done.stderr}")
    shutil.copytree(folder / "whole", folder / "half")
    journal = folder / "half" / JOURNAL_NAME
    lines = journal.read_bytes().splitlines(keepends=True)
    evaluated = [at for at, event in enumerate(read(journal)) if isinstance(event, RunEvaluated)]
    journal.write_bytes(b"".join(lines[: evaluated[_GROUPS]]))


def tried(kind: Kind, folder: Path, flips: int, rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """(command, verdict, words) of every command on every flipped file; the last describes what is wrong."""
    original = folder / ("half" if kind.half else "whole")
    files = sorted(path.relative_to(original) for path in original.glob(kind.files))
    place = folder / "place" / "experiment"
    places = {"EXPERIMENT": str(place), "FOLDER": str(place.parent), "OTHER": str(folder / "other")}
    intact: dict[tuple[Path, tuple[str, ...]], Answer] = {}
    for number in range(flips):
        file, state = rng.choice(files), rng.getstate()
        now = places | {"FILE": str(place / file)}
        for command in kind.commands if number % _SLOW else (*kind.commands, *kind.slow):
            if (file, command) not in intact:
                _copy(original, place)
                intact[file, command] = ask(command, now)
            rng.setstate(state)
            _copy(original, place)
            where = flipped(place / file, rng)
            found = ask(command, now)
            yield command[0], verdict_of(found, intact[file, command]), f"{file}, {where}: {' '.join(command)}: {found}"


def _copy(original: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(original, place)


def rows(flips: int, rng_seed: int, only: str) -> Iterator[dict[str, Any]]:
    """One per kind of file and command."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        for name, kind in KINDS.items():
            if only not in name:
                continue
            counts: dict[str, Counter[str]] = {}
            for command, verdict, words in tried(kind, Path(folder), flips, random.Random(f"{rng_seed} {name}")):
                counts.setdefault(command, Counter())[verdict] += 1
                if verdict == "wrong":
                    print(f"WRONG {words[:2000]}", flush=True)
            for command, count in counts.items():
                row = {"file": name, "command": command, "flips": count.total(), **{
                    key.replace(" ", "_"): count[key] for key in ("as intact", "named", "wrong")
                }}  # fmt: skip
                print(row, flush=True)
                yield row


def table(found: list[dict[str, Any]]) -> str:
    """Markdown."""
    heads = ("file", "read by", "flips", "result of the intact file", "damage named", "wrong")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [
        f"| {row['file']} | {row['command']} | {row['flips']} | {row['as_intact']} | {row['named']} | {row['wrong']} |"
        for row in found
    ]
    return "\n".join(lines)


def main() -> int:
    """Flip, ask, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=200, help="in each kind of file [200]")
    parser.add_argument("--rng-seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="KIND", help="only kinds whose name contains KIND")
    asked = parser.parse_args()
    before = json.loads(DATA.read_text(encoding="utf-8"))["rows"] if asked.only else []
    found = [row for row in before if asked.only not in row["file"]]
    for row in rows(asked.flips, asked.rng_seed, asked.only):
        found.append(row)  # as far as it has come, for whoever ends it
        PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), MARK, table(found)), encoding="utf-8")
        DATA.write_text(json.dumps({"rng_seed": asked.rng_seed, "rows": found}, indent=1) + "\n", encoding="utf-8")
    return 1 if any(row["wrong"] for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
