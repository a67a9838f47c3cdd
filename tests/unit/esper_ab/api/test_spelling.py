"""Settings in errors: flags on the command line, keys and arguments in Python."""

import ast
import pickle
import re
from pathlib import Path

import pytest
from support.goldens.refusal_sites import MAKERS
from support.goldens.refusals import expected, refusals

from esper_ab import create_experiment
from esper_ab.api.spelling import in_python, spelled
from esper_ab.contracts.errors import ByDoor, SettingName, UsageError, as_flag

ROOT = Path(__file__).resolve().parents[4]


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
        (ByDoor("`esper-ab report x`", "load_experiment('x')"), "`esper-ab report x`", "load_experiment('x')"),
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


# Files whose errors have flags in their text, and why Python does not show these errors.
NAME_FLAGS = {
    "esper_ab/analysis/pair_spread.py": "`power`",
    "esper_ab/api/what.py": "a flag of the user's command",
    "esper_ab/campaign/answering.py": "`report`",
    "esper_ab/campaign/audited_rewards.py": "`launch --reward-audit`",
    "esper_ab/campaign/confirming.py": "`launch`",
    "esper_ab/campaign/extending.py": "`resume`",
    "esper_ab/control/experiment_run.py": "`resume`",
    "esper_ab/design/calibration_file.py": "`launch --calibration`",
    "esper_ab/settings/flags.py": "flags of `launch`",
    "esper_ab/settings/parts.py": "--grid, and a margin per task, of `launch`",
    "esper_ab/settings/request.py": "--group and --vary of `launch`",
    "esper_ab/stream/proposal.py": "--set of `stream try`",
    "esper_ab/stream/trying.py": "--give-up of `stream try`",
    "esper_ab/verdict/requirement.py": "--fail-unless",
    "esper_ab/kept_runs/tidying.py": "--references and --references-limit of `tidy`",
    "esper_ab/kinds/trainer/settings.py": "a flag of the user's command",
    "workers/kinds/trainer/outcome_sources/wandb_log.py": "a flag of the user's program",
    "workers/kinds/gymnasium/kind.py": "`evaluate --import`",
}
COMMAND = re.compile("`[^`]*`")
FLAG = re.compile(r"(?<![\w-])--[a-z]")


def _names_flag(text):
    return FLAG.search(COMMAND.sub("", text)) and "in Python" not in text


def _raised(source):
    """Yield what `source` raises, and the errors that it makes in order to raise them elsewhere."""
    for node in ast.walk(ast.parse(source)):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if isinstance(node, ast.Raise) or (is_call and node.func.id in MAKERS):
            yield node


def _flags_in_errors(source):
    """Flags in the text of an error, which could not be spelled in another way."""
    texts = (
        node.value
        for error in _raised(source)
        for node in ast.walk(error)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return [text for text in texts if _names_flag(text)]


def test_a_flag_in_an_error_is_found():
    assert _flags_in_errors("raise ValueError(f'{x}: set --outcome-range')")
    assert _flags_in_errors("def f():\n    return UsageError('set --n-envs')")
    assert not _flags_in_errors("raise ValueError('`esper-ab judge --worst` or --x (in Python x)')")


def test_only_the_listed_files_name_flags_in_errors():
    """All others have a SettingName, or a text that is stored names the argument in Python, too."""
    paths = (path for package in ("esper_ab", "workers") for path in (ROOT / package).rglob("*.py"))
    files = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
    commands = re.compile(r".*/commands/|esper_ab/(health|live)/")
    flagged = {name for name, text in files.items() if not commands.match(name) and _flags_in_errors(text)}
    assert flagged == set(NAME_FLAGS)


def test_no_stored_error_of_a_python_call_names_a_flag():
    """Errors of functions that `esper_ab` exports, in tests/golden/refusals."""
    in_python = [
        expected(refusal.table)[refusal.name] for refusal in refusals() if "from esper_ab import" in refusal.python
    ]
    assert len(in_python) > 80
    assert [text for text in in_python if _names_flag(str(text))] == []


@pytest.mark.parametrize("base", [{"outcome": "shaped"}, {"nonsense": 1}])
def test_errors_of_a_builder_do_not_mention_the_command_line(base):
    start = create_experiment("x").add_variant("shaped").add_variant("wait").set_base_config(task="synthetic")
    with pytest.raises(UsageError) as caught:
        start.set_base_config(base).build()
    assert not re.search(r"--|launch", str(caught.value))
