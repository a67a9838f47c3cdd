"""How large each room of the packages is, and how large it may be: limits.toml beside this file.

    .venv/bin/python tests/house/limits.py            print the present sizes
    .venv/bin/python tests/house/limits.py --write    write them as the limits

Statements are counted without imports and docstrings, so joining or dropping lines changes nothing.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_name("limits.toml")
PACKAGES = ("esper_ab", "workers")
LANGUAGES = {
    "C++": {".cpp", ".h"}, "JSON": {".json"}, "TOML": {".toml"}, "Jinja": {".jinja"}, "CSS": {".css"}, "JS": {".js"},
    "SQL": {".sql"},
}  # fmt: skip
REASON = re.compile(r"^Room-limit: \S", re.MULTILINE)
_BUILT = re.compile(r"libkernel.*\.json")  # beside a library that an installation makes
Limits = dict[str, dict[str, int]]


def _has_docstring(node: ast.AST) -> bool:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None


def statements(tree: ast.Module) -> int:
    nodes = list(ast.walk(tree))
    counted = [one for one in nodes if isinstance(one, ast.stmt) and not isinstance(one, ast.Import | ast.ImportFrom)]
    return len(counted) - sum(map(_has_docstring, nodes))


def documented_percent(trees: list[ast.Module]) -> float:
    """The share of functions with a docstring."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return 100 * sum(map(_has_docstring, functions)) / len(functions)


def parsed(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every module of the packages with its path below `root`."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            yield path.relative_to(root), ast.parse(path.read_text(encoding="utf-8"))


def present(root: Path) -> Limits:
    """A room is a folder below its package; a package's own files are one, too."""
    rooms = Counter[str]()
    for path, tree in parsed(root):
        rooms["/".join(path.parts[: min(2, len(path.parts) - 1)])] += statements(tree)
    files = [file for package in PACKAGES for file in (root / package).rglob("*") if not _BUILT.fullmatch(file.name)]
    return {
        "statements": {"all": sum(rooms.values())} | rooms,
        "bytes": {
            name: sum(file.stat().st_size for file in files if file.suffix in endings)
            for name, endings in LANGUAGES.items()
        },
    }


def above(sizes: Limits, limits: Limits) -> list[str]:
    """What is larger than its limit. A room without one is new, and the limit of all holds."""
    return [
        f"{name}: {size} {unit}, at most {limits[unit][name]}"
        for unit, named in sizes.items()
        for name, size in named.items()
        if size > limits.get(unit, {}).get(name, size)
    ]


def unexplained(repository: Path, file: str) -> list[str]:
    """Commits that raise a limit, or drop that of all, without saying why. A merge may take what a side has changed."""
    found = []
    for line in _git(repository, "log", "--full-history", "--format=%H %P", "--", file).splitlines():
        commit, *parents = line.split()
        here, sides = _limits(repository, commit, file), [_limits(repository, parent, file) for parent in parents]
        if len(parents) > 1:
            base = _limits(repository, _git(repository, "merge-base", *parents[:2]).strip(), file)
            sides = [side for side in sides if side != base] or sides
        raised = [above(here, side) for side in sides]
        if all(raised) and raised and not REASON.search(_git(repository, "log", "-1", "--format=%B", commit)):
            found.append(f"{commit[:8]}: {'; '.join(raised[0])}")
    return found


def _limits(repository: Path, commit: str, file: str) -> Limits:
    shown = subprocess.run(("git", "show", f"{commit}:{file}"), cwd=repository, capture_output=True, text=True)
    return tomllib.loads(shown.stdout) if shown.returncode == 0 else {}


def _git(repository: Path, *arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=repository, capture_output=True, text=True, check=True).stdout


_WHAT = "How large the packages may be; written by tests/house/limits.py --write."


def toml(limits: Limits, what: str = _WHAT) -> str:
    sections = [
        f"\n[{unit}]\n" + "".join(f'"{name}" = {size}\n' for name, size in named.items())
        for unit, named in limits.items()
    ]
    return (
        f"# {what}\n"
        "# The last commit of a change lowers this to what is reached. A commit that raises a number says why in its\n"
        "# message, in a line that begins with `Room-limit: `.\n" + "".join(sections)
    )


def main(text: str, file: Path) -> None:
    """Print the limits that hold today, or write them."""
    if sys.argv[1:] == ["--write"]:
        file.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main(toml(present(ROOT)), FILE)
