"""docs/finished-runs.md: each recipe's command prints what the page shows, and its file begins as shown."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.commands.in_process import esper_ab

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "finished-runs.md").read_text(encoding="utf-8")
FIELD = ROOT / "tests" / "field" / "files"
FOLDERS = (ROOT / "docs" / "examples" / "finished-runs", FIELD / "judge")
RECIPES = re.findall(r"```sh\n(.*?)```(.*?)```text\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The page's files side by side."""
    for source in FOLDERS:
        shutil.copytree(source, tmp_path, dirs_exist_ok=True)
    shutil.copytree(FIELD / "tensorboard", tmp_path / "tensorboard")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "text_between", "answer"), RECIPES, ids=[recipe[0].split()[2] for recipe in RECIPES]
)
def test_a_recipe_prints_the_output_shown_on_the_page(folder, command, text_between, answer):
    words = shlex.split(command)
    ended = esper_ab(*words[1:], folder=folder)
    output = ended.stderr + ended.stdout
    for part in answer.split("…\n"):
        assert part in output
        output = output.partition(part)[2]
    assert ended.returncode == (3 if "NO INFERENCE" in answer else 0)
    for shown_csv in re.findall(r"```csv\n(.*?)```", text_between, flags=re.DOTALL):
        path = folder / words[2]
        first_file = path if path.is_file() else min(path.rglob("*.csv"))
        assert first_file.read_text(encoding="utf-8").startswith(shown_csv)


def test_every_recipe_of_the_page_is_tested():
    assert len(RECIPES) == PAGE.count("```sh\n") == 5
