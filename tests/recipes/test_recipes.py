"""docs/recipes.md: its listings are parts of the files beside this test, and each command prints what the page shows.

The numbers in an answer depend on the versions of the libraries, so only the words around them are compared.
"""

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent
PAGE = (PROGRAMS.parents[1] / "docs" / "recipes.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", flags=re.DOTALL)
LINK = re.compile(r"\(\.\./tests/recipes/([\w./]+)\)")
NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*(?:e-?\d+)?")
LIBRARIES = {  # of the program that a command runs
    "reinforce.py": ("gymnasium", "tensorboard"),
    "sb3_eval.py": ("stable_baselines3",),
    "rl_zoo3.train": ("rl_zoo3",),
    "app.py": ("hydra",),
    "fit.py": ("lightning",),
    "grpo.py": ("trl",),
    "ddp.py": (),
    "tour.py": (),
}


@dataclass(frozen=True)
class Recipe:
    program: str
    commands: list[str]
    answer: str


def recipes() -> list[Recipe]:
    """Each block of commands with the answer after it."""
    blocks = BLOCK.findall(PAGE)
    return [
        Recipe(program_of(commands), commands.replace("\\\n", " ").splitlines(), answer)
        for (language, commands), (_, answer) in pairwise(blocks)
        if language == "sh"
    ]


def program_of(commands: str) -> str:
    (program,) = (name for name in LIBRARIES if name in commands)
    return program


def listings() -> list[tuple[str, str]]:
    """Each block of Python with the first file that its section links to."""
    sections = PAGE.split("\n## ")[1:]
    return [
        (LINK.findall(section)[0], code)
        for section in sections
        for language, code in BLOCK.findall(section)
        if language == "python"
    ]


def words_of(text: str) -> str:
    return NUMBER.sub("#", " ".join(text.split()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(PROGRAMS, tmp_path / "my programs", ignore=shutil.ignore_patterns("test_*", "__pycache__"))
    return tmp_path / "my programs"


@pytest.mark.parametrize(("name", "code"), listings(), ids=[name for name, _ in listings()])
def test_a_listing_on_the_page_is_a_part_of_the_file_that_it_names(name, code):
    assert code in (PROGRAMS / name).read_text(encoding="utf-8")


def test_the_page_has_a_recipe_for_every_program():
    assert {recipe.program for recipe in recipes()} == set(LIBRARIES)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # the longest takes two minutes on two free cores
@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.program)
def test_the_command_of_a_recipe_prints_the_answer_on_the_page(folder, recipe):
    for library in LIBRARIES[recipe.program]:
        if find_spec(library) is None:
            pytest.skip(f"needs {library}: scripts/install recipes")
    printed = ""
    for command in recipe.commands:
        ended = subprocess.run(shlex.split(command), cwd=folder, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        printed = words_of(ended.stderr + ended.stdout)
    for part in map(words_of, recipe.answer.split("…")):
        assert part in printed
        printed = printed[printed.index(part) + len(part) :]
