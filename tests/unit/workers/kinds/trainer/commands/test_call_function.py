"""The program that calls a user's function, in processes of its own."""

from pathlib import Path
from typing import Any

import pytest

from esper_ab.contracts import users_shell
from esper_ab.contracts.source_files import copy_files
from workers.kinds.trainer.function_call import CallPlace, called
from workers.kinds.trainer.function_messages import Call, Called
from workers.kinds.trainer.idling import Watch
from workers.kinds.trainer.running import ScriptFailed


def call(folder: Path, reference: str, **changes: Any) -> Called:
    fields: dict[str, Any] = {
        "reference": reference,
        "directory": str(folder),
        "groups": {"a": {}},
        "group": "a",
        "seed": 7,
        "filled": {},
    }
    place = CallPlace(root=folder, folder="run", log="run.log", pins={}, shell=users_shell.of_this_process())
    return called(Call(**fields | changes), place, Watch())


def returned(folder: Path, code: str, **changes: Any) -> list[dict[str, str]]:
    """Return what `train` of a file with this code returned."""
    (folder / "my file.py").write_text(code)
    return list(call(folder, f"{folder}/my file.py:train", **changes).points)


def complaint(folder: Path, code: str, reference: str = "") -> str:
    (folder / "my file.py").write_text(code)
    with pytest.raises(ScriptFailed) as error:
        call(folder, reference or f"{folder}/my file.py:train")
    return str(error.value)


def test_a_function_is_called_with_seed_settings_and_placeholders(tmp_path: Path) -> None:
    code = "def train(seed, lr, out, device='none'): return {'seed': seed, 'lr': lr, out: len(device)}"
    filled = {"out": "folder", "device": "cpu"}
    points = returned(tmp_path, code, groups={"a": {"lr": "0.5"}, "b": {"lr": 1}}, filled=filled)
    assert points == [{"seed": "7.0", "lr": "0.5", "folder": "3.0"}]


def test_rehearsal_settings_override_the_settings_of_a_group(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("def train(seed, lr: float, steps=9): return steps")
    answer = call(tmp_path, f"{tmp_path}/t.py:train", groups={"a": {"lr": "1"}, "b": {"lr": 2}}, more={"steps": "2"})
    assert answer.settings == {"a": {"lr": 1.0, "steps": 9}, "b": {"lr": 2, "steps": 9}}
    assert answer.points == ({"": "2.0"},)


def test_the_main_block_of_a_file_is_not_executed(tmp_path: Path) -> None:
    code = (
        "NAME = __name__\ndef train(seed): return NAME == '__mp_main__'\nif __name__ == '__main__': raise SystemExit(3)"
    )
    assert returned(tmp_path, code) == [{"": "1.0"}]


def test_a_file_is_loaded_only_up_to_its_call_of_compare_training(tmp_path: Path) -> None:
    code = (
        "from esper_ab import compare_training\ndef train(seed): return 1\ncompare_training(train, {})\nraise OSError"
    )
    assert returned(tmp_path, code) == [{"": "1.0"}]


def test_a_call_of_compare_training_inside_the_function_is_refused(tmp_path: Path) -> None:
    code = "import esper_ab\ndef train(seed): esper_ab.compare_training(train, {})"
    assert complaint(tmp_path, code) == (
        "train failed: ValueError: compare_training is called inside a function that it compares (my file.py, line 2)"
    )


def test_modules_beside_the_file_are_found_even_if_imported_late(tmp_path: Path) -> None:
    (tmp_path / "early.py").write_text("ONE = 1")
    (tmp_path / "late.py").write_text("TWO = 2")
    (tmp_path / "other.py").write_text("THREE = 3")
    (tmp_path / "t.py").write_text("import early\ndef train(seed):\n    import late\n    return early.ONE + late.TWO")
    answer = call(tmp_path, f"{tmp_path}/t.py:train")
    assert answer.points == ({"": "3.0"},)
    assert (answer.root, answer.files) == (str(tmp_path), ("t.py", "early.py", "late.py"))


@pytest.mark.parametrize("init", [True, False], ids=["package", "folder"])
def test_a_function_can_use_relative_imports(tmp_path: Path, init: bool) -> None:
    package = tmp_path / "src" / "lab"
    package.mkdir(parents=True)
    (package / "parts.py").write_text("ONE = 1")
    (package / "t.py").write_text(
        "from .parts import ONE\ndef train(seed):\n    from . import parts\n    return parts.ONE"
    )
    if init:
        (package / "__init__.py").touch()
    for reference in (f"{package}/t.py:train", "lab.t:train"):
        answer = call(tmp_path, reference)
        assert answer.points == ({"": "1.0"},)
        assert (answer.root, answer.files[0]) == (str(tmp_path / "src"), "lab/t.py")


def test_copied_files_are_executed_under_their_original_paths(tmp_path: Path) -> None:
    code = "import part\ndef train(seed): return {'one': part.ONE, 'here': __file__ == %r, 'part': part.__file__ == %r}"
    file, part = tmp_path / "t.py", tmp_path / "part.py"
    file.write_text(code % (str(file), str(part)))
    part.write_text("ONE = 1")
    (tmp_path / "kept").mkdir()
    copy_files(tmp_path, ("t.py", "part.py"), tmp_path / "kept")
    file.write_text("raise OSError")
    part.write_text("ONE = 2")
    answer = call(tmp_path, f"{file}:train", kept=str(tmp_path / "kept"), files=("t.py", "part.py"))
    assert answer.points == ({"one": "1.0", "here": "1.0", "part": "1.0"},)


def test_modules_of_the_user_may_have_the_names_of_our_modules(tmp_path: Path) -> None:
    (tmp_path / "workers.py").write_text("ONE = 1")
    (tmp_path / "rehearsal.py").write_text("TWO = 2")
    code = "import workers, rehearsal\ndef train(seed): return workers.ONE + rehearsal.TWO"
    assert returned(tmp_path, code) == [{"": "3.0"}]


def test_processes_spawned_by_a_function_can_import_its_file(tmp_path: Path) -> None:
    code = (
        "import multiprocessing\n"
        "def twice(value): return 2 * value\n"
        "def train(seed):\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool: return pool.map(twice, [seed])\n"
    )
    assert returned(tmp_path, code) == [{"": "14.0"}]


def test_threads_left_by_a_function_do_not_delay_its_result(tmp_path: Path) -> None:
    code = (
        "import threading\ndef train(seed):\n    threading.Thread(target=threading.Event().wait).start()\n    return 1"
    )
    assert returned(tmp_path, code) == [{"": "1.0"}]


def test_an_exception_of_a_function_is_reported_in_one_line(tmp_path: Path) -> None:
    code = "def train(seed):\n    return helper()\ndef helper():\n    raise ValueError('bad\\nrate')"
    assert complaint(tmp_path, code) == "train failed: ValueError: bad rate (my file.py, line 4)"
    assert "Traceback" in (tmp_path / "run.log").read_text()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "import nowhere",
            "loading my file.py failed: ModuleNotFoundError: No module named 'nowhere' (my file.py, line 1)",
        ),
        ("def train(seed:\n", "loading my file.py failed: SyntaxError: "),
        ("def learn(seed): ...", "no function 'train' in my file.py; known: learn"),
        ("def trian(seed): ...", "no function 'train' in my file.py; did you mean trian?"),
        ("from shlex import quote\ndef learn(seed): ...", "no function 'train' in my file.py; known: learn"),
        ("train = 3", "no function 'train' in my file.py; known: none"),
        ("def train(seed): return None", "what train returned is None, not a number"),
        ("import sys\ndef train(seed): sys.exit(2)", "train failed: SystemExit: 2 (my file.py, line 2)"),
        (
            "import os\ndef train(seed): os._exit(0)",
            "train ended its process before it returned, by os._exit or the like",
        ),
        ("import os\ndef train(seed): os.kill(os.getpid(), 9)", "the process of train ended with exit status 137: "),
    ],
)
def test_a_reference_to_an_uncallable_object_is_refused_in_one_line(tmp_path: Path, code: str, expected: str) -> None:
    line = complaint(tmp_path, code)
    assert line.startswith(expected)
    assert "\n" not in line


def test_a_file_or_module_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert complaint(tmp_path, "", f"{tmp_path}/other.py:train") == f"{tmp_path}/other.py: no such file"
    line = "no module 'lab.t'; start where Python finds it, or name the file, as in src/lab.py:train"
    assert complaint(tmp_path, "", "lab.t:train") == line


def test_an_installed_function_is_not_copied(tmp_path: Path) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "lab.py").write_text("def train(seed): return seed")
    answer = call(tmp_path, f"{installed}/lab.py:train")
    assert (answer.points, answer.files) == (({"": "7.0"},), ())


def test_the_process_of_a_function_imports_neither_torch_nor_numpy(tmp_path: Path) -> None:
    code = "import sys\ndef train(seed): return {name: name in sys.modules for name in ('torch', 'numpy', 'workers')}"
    assert returned(tmp_path, code) == [{"torch": "0.0", "numpy": "0.0", "workers": "0.0"}]
