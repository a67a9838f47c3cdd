"""Settings in errors: flags on the command line, keys and arguments in Python."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest

from esper_ab import create_experiment, run_ab_test
from esper_ab.api.setting_names import in_python, spelled
from esper_ab.contracts.errors import Setting, UsageError, as_flag

START = create_experiment("x").add_variant("shaped").add_variant("wait").set_base_config(task="synthetic")
ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(("setting", "flag", "python"), [
    (Setting("n_envs", 2), "--n-envs 2", "n_envs=2"),
    (Setting("control", "zz"), "--control zz", "control=zz"),
    (Setting("unpaired"), "--unpaired", "unpaired"),
    (Setting("slots", ("late", "early")), "--slots late early", "slots=['late', 'early']"),
    (Setting("looks", (6, 10)), "--looks 6,10", "looks=[6, 10]"),
    (Setting("ppo.lr", "…", assigned=True), "--set ppo.lr=…", "ppo.lr=…"),
    (Setting("max_parallel", 1), "--max-parallel 1", "max_parallel_runs=1"),
    (Setting("output_dir"), "--output-dir", "output_dir"),
    (Setting("name"), "--name", "name"),
])  # fmt: skip
def test_each_front_end_spells_a_setting_as_its_users_write_it(setting, flag, python):
    assert as_flag(setting) == flag
    assert in_python()(setting) == python


def test_text_is_left_alone_and_the_command_line_is_what_is_not_said_otherwise():
    error = UsageError("/tmp/a--b: ", Setting("n_envs", 2), " of --c")
    assert str(error) == "/tmp/a--b: --n-envs 2 of --c"
    with pytest.raises(UsageError, match=r"^/tmp/a--b: n_envs=2 of --c$"), spelled(in_python()):
        raise error
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # of a pool's process


# What speaks to the command line alone; everything else is also reached from Python, and names settings as Setting.
ONLY_FLAGS = ("calibration_file.py", "flags.py", "launch.py", "options.py", "cli.py", "exit_status.py")
LINES_OF_FLAGS = ("--group", "--set")  # Request.group and .assignments, which only the command line fills


@pytest.mark.parametrize("path", sorted(
    path for path in (*(ROOT / "esper_ab").glob("*.py"), ROOT / "esper_ab" / "control" / "preflight.py")
    if path.name not in ONLY_FLAGS
), ids=lambda path: path.name)  # fmt: skip
def test_no_error_that_python_may_see_has_a_flag_in_its_text(path):
    """Flags in the text of a UsageError could not be spelled in another way."""
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    errors = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "UsageError")
    texts = (
        node.value for error in errors for part in error.args for node in ast.walk(part)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    found = [text for text in texts if re.search(r"(?<!\w)--[a-z]", text) and not text.startswith(LINES_OF_FLAGS)]
    assert not found


def refusal(how):
    with pytest.raises(UsageError) as caught:
        how()
    return str(caught.value)


def test_a_bad_name_is_that_of_the_argument(tmp_path):
    assert refusal(lambda: run_ab_test(START.build(), tmp_path, name="a b")).startswith("name 'a b': a folder's name")
    assert refusal(lambda: run_ab_test(START.build(), tmp_path, name=3)) == "name=3: expected str, got int"


@pytest.mark.parametrize("base", [{"screening": True}, {"nonsense": 1}])
def test_a_builder_is_told_nothing_of_the_command_line(base):
    assert not re.search(r"--|launch", refusal(START.set_base_config(base).build))
