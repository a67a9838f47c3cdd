import functools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.outcomes.cells import executed

from esper_ab.api.function_reference import reference_of
from esper_ab.contracts.errors import UsageError


def train(seed, lr=0.1): ...


class Model:
    def fit(self, seed): ...


def test_a_function_defined_in_a_file_is_referred_to_by_the_file(tmp_path: Path) -> None:
    assert reference_of(train, tmp_path, "compare_training") == f"{Path(__file__).resolve()}:train"
    assert not list(tmp_path.iterdir())


def test_a_function_from_a_notebook_is_written_to_one_file(tmp_path: Path) -> None:
    function = executed("def train(seed): return 5")["train"]
    reference = reference_of(function, tmp_path / "experiments", "compare_training")
    file = Path(reference.removesuffix(":train"))
    assert file.is_relative_to(tmp_path / "experiments" / "functions")
    assert file.name == "train.py"
    assert "def train(seed): return 5" in file.read_text()
    assert reference_of(function, tmp_path / "experiments", "compare_training") == reference


def test_a_notebook_function_is_not_sought_in_a_script_that_the_notebook_has_run(tmp_path: Path, monkeypatch) -> None:
    names = executed("def train(seed): return 5")
    main = ModuleType("__main__")
    vars(main).update(names, __file__=str(tmp_path / "helper.py"))
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert "functions" in reference_of(names["train"], tmp_path, "compare_training")


def test_a_nested_function_is_written_to_a_file(tmp_path: Path) -> None:
    def inner(seed):
        return train(seed)

    text = Path(reference_of(inner, tmp_path, "compare_training").removesuffix(":inner")).read_text()
    assert "def inner(seed):\n    return train(seed)\n" in text
    assert "def train(seed, lr=0.1): ...\n" in text


def enclosed(*values: Any) -> Any:
    first, second = values

    def uses_one(seed):
        return first

    def uses_two(seed):
        return first + second

    return uses_one, uses_two


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda seed: 1.0, "a lambda cannot be sent to other processes; define the function by def, with a name"),
        (
            enclosed(1, 2)[0],
            "uses_one uses first of the function around it, which cannot be sent to other processes; make it a setting "
            "of the groups",
        ),
        (
            enclosed(1, 2)[1],
            "uses_two uses first and second of the function around it, which cannot be sent to other processes; make "
            "them settings of the groups",
        ),
        (
            functools.partial(train, lr=1),
            "a functools.partial cannot be sent to other processes; give the function, and the values as settings",
        ),
        (Model().fit, "fit is a method; give a function, which makes its object itself"),
        (print, "expected a function train(seed, …) that returns its outcome, not <built-in function print>"),
        ("train.py:train", "expected a function train(seed, …) that returns its outcome, not 'train.py:train'"),
    ],
    ids=["lambda", "closure", "closure of two", "partial", "method", "builtin", "text"],
)
def test_a_function_that_other_processes_cannot_call_is_refused(tmp_path: Path, function: Any, complaint: str) -> None:
    with pytest.raises(UsageError) as error:
        reference_of(function, tmp_path, "compare_training")
    assert str(error.value) == f"compare_training: {complaint}"


def test_the_error_about_an_unwritable_folder_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "functions").write_text("a file where a folder has to be")
    with pytest.raises(UsageError, match=r"functions cannot be written: .*; choose another output_dir$"):
        reference_of(executed("def train(seed): return 5")["train"], tmp_path, "compare_training")
