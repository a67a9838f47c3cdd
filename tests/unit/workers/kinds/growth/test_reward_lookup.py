"""The reward function of a mode, file or module, and its refusals."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.rewards.reward_facts import make_facts

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import UserReward
from esper_ab.contracts.settings import RewardSettings
from esper_ab.plan.reward_code import code_of, keep_rewards
from workers.kinds.growth.preflight import user_reward
from workers.kinds.growth.reward_lookup import find_reward
from workers.user_code import late_imports
from workers.user_code.loading import as_planned

SETTINGS = RewardSettings()
DOCS = Path(__file__).parents[5] / "docs" / "rewards.md"


@pytest.fixture
def user_file(tmp_path):
    def write_reward(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_reward


def rewards_of(mode, **facts):
    return find_reward(mode)(make_facts(**facts), SETTINGS).tolist()


@pytest.mark.parametrize("mode", ["sparse", "workers.kinds.growth.rewards.sparse:reward"])
def test_a_reward_is_found_by_its_reference(mode):
    assert rewards_of(mode, step=25) == pytest.approx([0.5 - 0.1 * 1000 / 500_000])


def test_the_example_reward_of_the_rewards_page_can_be_used(user_file):
    example = re.search(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL).group(1)
    mode = f"{user_file(example, 'accuracy_gain.py')}:reward"
    assert rewards_of(mode, shape=(2, 3), acc_delta=[2.0, np.nan], present=[[True, True, False], [False] * 3]) == [
        1.9,
        0.0,
    ]


def test_a_reward_file_can_have_a_relative_path(user_file, monkeypatch):
    monkeypatch.chdir(user_file("def half(facts, settings):\n    return facts.val_acc / 2\n").parent)
    assert rewards_of("mine.py:half") == [25.0]


@pytest.mark.parametrize("fact", ["val_acc", "op", "seeds.contribution", "seeds.present"])
def test_a_reward_cannot_write_into_the_facts(user_file, fact):
    path = user_file(f"def reward(facts, settings):\n    facts.{fact}[...] = 0\n    return facts.val_acc\n")
    with pytest.raises(ValueError, match=r"reward mode '.*mine.py:reward' failed: ValueError: .*read-only"):
        rewards_of(f"{path}:reward")


REWARD = "\ndef reward(facts, settings):\n    return facts.val_acc * 0 + PRICE\n"


def test_an_installed_module_has_precedence_over_a_file_beside_the_reward(user_file, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    user_file("raise RuntimeError('the wrong one')", "colorsys.py")
    path = user_file(f"import colorsys\nPRICE = colorsys.ONE_THIRD{REWARD}")
    assert rewards_of(f"{path}:reward") == pytest.approx([1 / 3])


def test_a_reward_file_does_not_shadow_modules_of_the_same_name(user_file):
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport numpy\n"
        "@dataclass\nclass Scale:\n    by: float = 2.0\n"
        "def scaled(facts, settings):\n    return Scale().by * numpy.asarray(facts.val_acc)\n"
    )
    assert rewards_of(f"{user_file(text, 'json.py')}:scaled") == [100.0]


OTHER_FUNCTION = "def other(facts, settings): pass\n"


@pytest.mark.parametrize(
    ("mode", "text", "complaint"),
    [
        ("shapd", "", r"no reward mode 'shapd': did you mean 'shaped'\? choose from .*shaped"),
        ("zzz", "", r"no reward mode 'zzz': choose from .*path/to/file\.py:function or module:function"),
        ("_loss", "", "no reward mode '_loss'"),
        ("mine.py", OTHER_FUNCTION, "no reward mode 'mine.py'.*file.py:function"),
        (":reward", "", "expected path/to/file.py:function"),
        ("shaped:", "", "expected path/to/file.py:function"),
        ("nowhere.py:reward", "", "no file '/.*nowhere.py'"),
        ("no.such.module:reward", "", "importing 'no.such.module' failed: ModuleNotFoundError: No module named 'no'"),
        ("workers.kinds.growth.rewards.sparse:rewards", "", "no function 'rewards'; available: reward$"),
        ("mine.py:reward", OTHER_FUNCTION, "no function 'reward'; available: other$"),
        ("mine.py:reward", "reward = 3\n", "no function 'reward'; available: none$"),
        ("mine.py:reward", "def reward(facts): pass\n", r"must accept the arguments \(facts, settings\)"),
        ("mine.py:reward", "def reward(\n", "running mine.py failed: SyntaxError"),
        ("mine.py:reward", "import nothing_of_the_kind\n", "running mine.py failed: ModuleNotFoundError"),
    ],
)
def test_an_invalid_reward_reference_is_refused_in_one_line(user_file, monkeypatch, mode, text, complaint):
    monkeypatch.chdir(user_file(text).parent)
    with pytest.raises(ValueError, match=complaint) as caught:
        find_reward(mode)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("body", ["[1, 1]", "facts.op + 1", "(facts.op + 1).astype('float32')", "facts.op == 0"])
def test_a_reward_may_return_any_numeric_type(user_file, body):
    values = find_reward(f"{user_file(f'def mine(facts, settings): return {body}')}:mine")(make_facts((2, 3)), SETTINGS)
    assert (values.dtype, values.tolist()) == (np.float64, [1.0, 1.0])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("facts.nothing", r"failed: AttributeError: .*'nothing' \(mine\.py, line 3\)$"),
        ("np.zeros(7)", r"returned shape \(7,\) float64, not \(3,\) float64$"),
        ("facts.val_acc + 1j", r"returned shape \(3,\) complex128, not \(3,\) float64$"),
        ("None", r"returned shape \(\) object, not \(3,\) float64$"),
        ("facts.acc_delta", r"is not finite at step 1: \[nan, nan, nan\]; .*\(at step 1: acc_delta and loss_delta\)$"),
        ("np.where(facts.seeds.present[:, 0], np.inf, 0.0)", r"is not finite at step 12: \[inf, inf, inf\]$"),
        ("np.full(3, 1e200)", r"is beyond 1e\+40 at step 1: \[1e\+200, 1e\+200, 1e\+200\]$"),
        ("np.nan_to_num(facts.acc_delta)", "^$"),
        ("facts.seeds.present[:, 1] * 1.0", "^$"),
    ],
)
def test_the_preflight_reports_the_problem_of_a_user_reward(user_file, body, problem):
    path = user_file(f"import numpy as np\ndef mine(facts, settings):\n    return {body}\n")
    user_code = user_reward(f"{path}:mine", 2, lambda action: None)
    assert re.search(problem, user_code.problem)
    assert "\n" not in user_code.problem


def find_planned(reference: str, experiment_dir: Path):
    """As a run finds it: what the preflight loaded, copied."""
    reward: UserReward = user_reward(reference, 3, lambda action: None)
    assert reward.problem == ""
    experiment_dir.mkdir(exist_ok=True)
    keep_rewards(experiment_dir, [reward])
    return partial(find_reward, load=as_planned([code_of(reward)], experiment_dir))


PACKAGES = {  # the first file has the reward
    "beside": {"mine.py": "import prices\nPRICE = prices.PRICE" + REWARD, "prices.py": "PRICE = 1\n"},
    "package": {
        "own/mine.py": "from .prices import PRICE\n" + REWARD,
        "own/__init__.py": "",
        "own/deep/__init__.py": "",
        "own/prices.py": "from own.deep.constants import PRICE\n",
        "own/deep/constants.py": "PRICE = 1\n",
    },
    "folder without __init__": {"mine.py": "from deep.prices import PRICE\n" + REWARD, "deep/prices.py": "PRICE = 1\n"},
    "named as a library": {"random.py": "import random\nPRICE = 1\nassert random.random() < 1\n" + REWARD},
}


@pytest.mark.parametrize("files", PACKAGES.values(), ids=PACKAGES)
@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_run_uses_the_planned_reward_after_the_file_changed(tmp_path, monkeypatch, files, is_deleted):
    project = {tmp_path / "project" / name: text for name, text in files.items()}
    for path, text in project.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    reference = f"{next(iter(project))}:reward"
    find = find_planned(reference, tmp_path / "run")
    monkeypatch.syspath_prepend(str(tmp_path / "project"))  # where the original would be found first
    for path, text in project.items():
        path.unlink() if is_deleted else path.write_text(text.replace("PRICE = 1", "PRICE = -777"))
    modules_before = dict(sys.modules)
    search_path = list(sys.path)
    for _ in range(2):
        assert find(reference)(make_facts(), SETTINGS).tolist() == [1.0]
    assert sys.path == search_path
    assert {name: sys.modules[name] for name in modules_before} == modules_before


PLAIN = "def reward(facts, settings):\n    return facts.val_acc * 1\n"


def test_a_changed_copy_of_a_reward_is_refused(tmp_path, user_file):
    path = user_file(PLAIN)
    find = find_planned(f"{path}:reward", tmp_path / "run")
    (copy,) = (tmp_path / "run").rglob("*.py")
    copy.write_text(copy.read_text() + "\n")
    with pytest.raises(ValueError, match=rf"its copy in {copy.parent} was changed since the experiment was planned"):
        find(f"{path}:reward")


def test_an_installed_reward_module_that_changed_is_refused(tmp_path, monkeypatch):
    (tmp_path / "priced.py").write_text(PLAIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    find = find_planned("priced:reward", tmp_path / "run")
    assert find("priced:reward")(make_facts(), SETTINGS)[0] == 50.0
    (tmp_path / "priced.py").write_text(PLAIN.replace("1", "2"))
    with pytest.raises(ValueError, match="module 'priced' was changed since the experiment was planned"):
        find("priced:reward")


def test_a_file_edited_between_preflight_and_copy_is_refused(tmp_path, user_file):
    path = user_file(PLAIN)
    reward = user_reward(f"{path}:reward", 3, lambda action: None)
    path.write_text(path.read_text() + "\n")
    with pytest.raises(UsageError, match="changed while the experiment was planned; launch it again"):
        keep_rewards(tmp_path, [reward])
    path.unlink()
    with pytest.raises(UsageError, match="changed while"):
        keep_rewards(tmp_path, [reward])


def test_a_reward_reads_data_from_its_original_folder(tmp_path, user_file):
    user_file("3.0", "price.txt")
    price = "float(Path(__file__).with_name('price.txt').read_text())"
    path = user_file(f"from pathlib import Path\nPRICE = {price}{REWARD}")
    assert find_planned(f"{path}:reward", tmp_path / "run")(f"{path}:reward")(make_facts(), SETTINGS)[0] == 3.0


def test_rewards_loaded_in_threads_do_not_affect_each_other(tmp_path):
    """Each has a neighbour of the same name; while one is imported another begins."""
    slow_module = "import threading\nthreading.Event().wait(0.005)\nPRICE = {}\n"
    rewards_to_find = []
    for price in range(6):
        folder = tmp_path / str(price)
        folder.mkdir()
        (folder / "prices.py").write_text(slow_module.format(price))
        (folder / "mine.py").write_text("import prices\nPRICE = prices.PRICE" + REWARD)
        rewards_to_find.append(
            (f"{folder / 'mine.py'}:reward", find_planned(f"{folder / 'mine.py'}:reward", tmp_path / "run"))
        )
    modules_before = set(sys.modules)
    path = list(sys.path)
    bytecode = sys.dont_write_bytecode
    with ThreadPoolExecutor(6) as pool:
        rewards = list(
            pool.map(
                lambda find_and_reference: find_and_reference[1](find_and_reference[0])(make_facts(), SETTINGS)[0],
                rewards_to_find,
            )
        )
    assert rewards == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert (sys.path, sys.dont_write_bytecode, "prices" in sys.modules) == (path, bytecode, False)
    assert {name for name in set(sys.modules) - modules_before if not name.startswith("user_reward_")} == set()


LATE = {  # the reward's file, and the files beside it; each is imported when the reward is called
    "statement": {
        "mine.py": "import base\n\ndef reward(facts, settings):\n    import prices\n"
        "    assert prices.base is base\n    return facts.val_acc * 0 + prices.PRICE\n"
    },
    "function": {
        "mine.py": "from importlib import import_module as get\nimport base\n\ndef reward(facts, settings):\n"
        "    assert get('base') is base\n    return facts.val_acc * 0 + get('prices').PRICE\n"
    },
    "package": {
        "own/mine.py": "from . import base\n\ndef reward(facts, settings):\n    from . import prices\n"
        "    assert prices.base is base\n    return facts.val_acc * 0 + prices.PRICE\n",
        "own/__init__.py": "",
    },
}


@pytest.mark.parametrize("files", LATE.values(), ids=LATE)
@pytest.mark.parametrize("is_planned", [False, True])
def test_a_reward_can_import_a_neighbouring_module_when_it_is_called(tmp_path, monkeypatch, files, is_planned):
    """Each of two projects imports its own module, and neither imports the one in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "prices.py").write_text("PRICE = -777\n")
    (tmp_path / "base.py").write_text("")
    modules_before = dict(sys.modules)
    search_path = list(sys.path)
    for price in (1.0, 2.0, 1.0):
        folder = tmp_path / f"project{price}"
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        reward_file = folder / next(iter(files))
        (reward_file.parent / "base.py").write_text(f"PRICE = {price}\n")
        package_prefix = "from . " if "own" in str(reward_file.parent.name) else ""
        (reward_file.parent / "prices.py").write_text(f"{package_prefix}import base\nPRICE = base.PRICE\n")
        find = find_planned(f"{reward_file}:reward", tmp_path / f"run{price}") if is_planned else find_reward
        assert find(f"{reward_file}:reward")(make_facts(), SETTINGS)[0] == price
    late_imports.forget()
    assert sys.path == search_path
    assert {name for name in set(sys.modules) - set(modules_before) if not name.startswith("user_reward_")} == set()
