"""Stored lists of mutants, drawn once, with the latest result of each.

A mutant is identified by module, scope, the segment before and after, and its occurrence in the scope, so lists survive
edits elsewhere. If its scope has moved to a different module, the mutant is found there; otherwise the mutant is gone.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from mutation import scopes
from mutation.operators import mutations

ROOT = Path(__file__).resolve().parents[2]
LISTS = ROOT / "tests" / "golden" / "mutants"
PACKAGES = ("esper_ab", "workers")
# Written by a script: numbers of a simulation, which no unit test can know. They outnumber the code of their room.
TABLES = ("esper_ab/stats/error_rate_table.py",)
_LONGEST = 160  # characters of a segment: a longer one is soon edited
KILLED = "killed"
SURVIVED = "survived"
NOT_REACHED = "not reached"
GONE = "gone"


class Mutant(msgspec.Struct, omit_defaults=True):
    """`function`: "" outside any function or class. `result`: "" if never tried.

    `by`: the test that failed, timed out or crashed; "import" if no test did.
    """

    module: str
    function: str
    before: str
    after: str
    occurrence: int = 0
    result: str = ""
    by: str = ""


class Located(msgspec.Struct, frozen=True):
    """The current location of a mutant."""

    path: Path
    line: int
    is_late: bool  # it is in the body of a function, so it can be put there after the import
    tree: ast.Module  # of the mutated module


def draw(root: Path, room: str, size: int, rng_seed: int) -> list[Mutant]:
    """Return at most `size` mutants of a room (a module or a folder of modules), in random order.

    Tables that a script writes are left out.
    """
    rng = random.Random(rng_seed)
    drawn_mutants: dict[tuple[str, str, str, str, int], Mutant] = {}
    for path in modules(root, room):
        name = str(path.relative_to(root))
        if name in TABLES:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function, scope in scopes.scopes(tree).items():
            for mutant in _of_scope(name, function, scope, rng):
                drawn_mutants[msgspec.structs.astuple(mutant)[:5]] = mutant
    mutants = list(drawn_mutants.values())
    rng.shuffle(mutants)
    return mutants[:size]


def refilled(root: Path, room: str, mutants: list[Mutant], rng_seed: int) -> list[Mutant]:
    """Return the mutants, each that is gone replaced by a new one: of its function, else of its module, else of any.

    A mutant for which no new one is left is removed.
    """
    kept_keys = {msgspec.structs.astuple(mutant)[:5] for mutant in mutants if locate(root, mutant)}
    new_mutants = [
        mutant
        for mutant in draw(root, room, sys.maxsize, rng_seed)
        if msgspec.structs.astuple(mutant)[:5] not in kept_keys
    ]
    filled_mutants = []
    for mutant in mutants:
        if msgspec.structs.astuple(mutant)[:5] in kept_keys:
            filled_mutants.append(mutant)
        elif new_mutants:
            new_mutant = _nearest(mutant, new_mutants)
            new_mutants.remove(new_mutant)
            filled_mutants.append(new_mutant)
    return filled_mutants


def _nearest(gone_mutant: Mutant, new_mutants: list[Mutant]) -> Mutant:
    """Return the first new mutant in the function of one that is gone; else the first in its module; else the first."""
    name = gone_mutant.function.rpartition(".")[2]  # also if the function has moved to another module
    of_function = [mutant for mutant in new_mutants if name and mutant.function.rpartition(".")[2] == name]
    of_module = [mutant for mutant in new_mutants if mutant.module == gone_mutant.module]
    return (of_function or of_module or new_mutants)[0]


def modules(root: Path, room: str) -> list[Path]:
    path = root / room
    return [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))


def _of_scope(module: str, function: str, scope: scopes.Scope, rng: random.Random) -> Iterable[Mutant]:
    all_places = list(scopes.places(scope))
    for place in all_places:
        for source, mutated_source in mutations(place, rng):
            if len(source) > _LONGEST or scopes.key(scopes.parsed(source)) == scopes.key(scopes.parsed(mutated_source)):
                continue
            equal_places = scopes.occurrences(scope, source, mutated_source)
            indices = [
                index for index, candidate in enumerate(equal_places) if candidate.node in (place.node, *place.above)
            ]
            if indices:
                yield Mutant(module, function, source, mutated_source, indices[-1])


def locate(root: Path, mutant: Mutant) -> Located | None:
    """Find the mutant in its module, or in a different module that has the same scope and segment."""
    path = root / mutant.module
    if path.is_file() and (place := _in_module(path, mutant)):
        return place
    matches = [
        place for defining_path in _defining(root, mutant.function) if (place := _in_module(defining_path, mutant))
    ]
    return matches[0] if mutant.function and matches else None


def _in_module(path: Path, mutant: Mutant) -> Located | None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    scope = scopes.scopes(tree).get(mutant.function)
    mutant_places = scopes.occurrences(scope, mutant.before, mutant.after) if scope is not None else []
    if len(mutant_places) <= mutant.occurrence:
        return None
    place = mutant_places[mutant.occurrence]
    is_late = isinstance(scope, ast.FunctionDef) and not place.is_default
    line = place.node.lineno
    scopes.replace(place, mutant.after)
    return Located(path, line, is_late, tree)


def _defining(root: Path, function: str) -> list[Path]:
    return _by_function(root)[function]


@cache
def _by_function(root: Path) -> dict[str, list[Path]]:
    paths: defaultdict[str, list[Path]] = defaultdict(list)
    for path in (module for package in PACKAGES for module in modules(root, package)):
        for function in scopes.scopes(ast.parse(path.read_text(encoding="utf-8"))):
            paths[function].append(path)
    return paths


def read(path: Path) -> list[Mutant]:
    return msgspec.json.decode(path.read_bytes(), type=list[Mutant])


def write(path: Path, mutants: list[Mutant]) -> None:
    """Write one mutant per line, so that diffs show which changed."""
    lines = [json.dumps(msgspec.to_builtins(mutant), ensure_ascii=False) for mutant in mutants]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
