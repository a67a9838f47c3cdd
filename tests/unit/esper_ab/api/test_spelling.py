"""Settings in errors: flags on the command line, keys and arguments in Python."""

import ast
import pickle
import re
from pathlib import Path

import pytest

from esper_ab import create_experiment
from esper_ab.api.spelling import in_python, spelled
from esper_ab.contracts.errors import SettingName, UsageError, as_flag

PACKAGE = Path(__file__).resolve().parents[4] / "esper_ab"


@pytest.mark.parametrize(
    ("setting", "flag", "python"),
    [
        (SettingName("n_envs", 2), "--n-envs 2", "n_envs=2"),
        (SettingName("control", "zz"), "--control zz", "control=zz"),
        (SettingName("unpaired"), "--unpaired", "unpaired"),
        (SettingName("slots", ("late", "early")), "--slots late early", "slots=['late', 'early']"),
        (SettingName("columns", {"item": "thing"}), "--columns item=thing", "columns={'item': 'thing'}"),
        (SettingName("looks", (6, 10)), "--looks 6,10", "looks=[6, 10]"),
        (SettingName("ppo.lr", "…", assigned=True), "--set ppo.lr=…", "ppo.lr=…"),
        (SettingName("max_parallel", 1), "--max-parallel 1", "max_parallel_runs=1"),
        (SettingName("output_dir"), "--output-dir", "output_dir"),
        (SettingName("name"), "--name", "name"),
    ],
)
def test_a_setting_is_spelled_as_a_flag_or_in_python(setting, flag, python):
    assert as_flag(setting) == flag
    assert in_python()(setting) == python


def test_errors_spell_settings_as_flags_by_default():
    error = UsageError("/tmp/a--b: ", SettingName("n_envs", 2), " of --c")
    assert str(error) == "/tmp/a--b: --n-envs 2 of --c"
    with pytest.raises(UsageError, match=r"^/tmp/a--b: n_envs=2 of --c$"), spelled(in_python()):
        raise error
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # like one from a process of a pool


# Files whose errors have flags in their text: errors of the command line, and some that Python may show.
NAME_FLAGS = {
    "analysis/pair_spread.py",
    "control/experiment_run.py",
    "design/calibration_file.py",
    "campaign/answering.py",
    "campaign/confirming.py",
    "campaign/extending.py",
    "campaign/audited_rewards.py",
    "campaign/reward_audit.py",
    "kinds/trainer/settings.py",
    "launchers/__init__.py",
    "launchers/ray.py",
    "launchers/_ray_shares.py",
    "live/viewer.py",
    "readers/external_plan.py",
    "readers/order_file.py",
    "readers/table_columns.py",
    "settings/flags.py",
    "settings/parts.py",
    "settings/request.py",
    "verdict/requirement.py",
}
LINES_OF_FLAGS = ("--group", "--set")  # Request.group and .assignments, which only the command line fills


def _flags_in_errors(source):
    """Flags in the text of a UsageError, which could not be spelled in another way."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    errors = (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "UsageError")
    parts = (
        node.value
        for error in errors
        for part in error.args
        for node in ast.walk(part)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return [text for text in parts if re.search(r"(?<!\w)--[a-z]", text) and not text.startswith(LINES_OF_FLAGS)]


def test_only_the_listed_files_name_flags_in_errors():
    files = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}
    assert {
        name for name, text in files.items() if not name.startswith("commands/") and _flags_in_errors(text)
    } == NAME_FLAGS


@pytest.mark.parametrize("base", [{"outcome": "shaped"}, {"nonsense": 1}])
def test_errors_of_a_builder_do_not_mention_the_command_line(base):
    start = create_experiment("x").add_variant("shaped").add_variant("wait").set_base_config(task="synthetic")
    with pytest.raises(UsageError) as caught:
        start.set_base_config(base).build()
    assert not re.search(r"--|launch", str(caught.value))
