"""From a mode's name to its function, and the errors on the way."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.reward_facts import make_facts

from esper_ab.contracts.children import UserReward
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import RewardSettings
from esper_ab.plan.users_code import code_of, keep_rewards
from workers.growth.preflight import user_reward
from workers.user_rewards.lookup import find_reward
from workers.user_rewards.user_code import as_planned

SETTINGS = RewardSettings()
DOCS = Path(__file__).parents[4] / "docs" / "rewards.md"


@pytest.fixture
def user_file(tmp_path):
    def written(text, name="mine.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return written


def test_catalogue_name():
    assert find_reward("sparse")(make_facts(step=25), SETTINGS)[0] == pytest.approx(0.5 - 0.1 * 1000 / 500_000)


def test_the_example_of_the_docs(user_file):
    example = re.search(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL).group(1)
    function = find_reward(f"{user_file(example, 'accuracy_gain.py')}:reward")
    facts = make_facts((2, 3), acc_delta=[2.0, np.nan], present=[[True, True, False], [False, False, False]])
    np.testing.assert_allclose(function(facts, SETTINGS), [1.9, 0.0])


def test_relative_path(user_file, monkeypatch):
    path = user_file("def half(facts, settings):\n    return facts.val_acc / 2\n")
    monkeypatch.chdir(path.parent)
    assert find_reward("mine.py:half")(make_facts(), SETTINGS)[0] == 25.0


@pytest.mark.parametrize("fact", ["val_acc", "op", "seeds.contribution", "seeds.present"])
def test_a_reward_cannot_write_into_the_facts(user_file, fact):
    path = user_file(f"def reward(facts, settings):\n    facts.{fact}[...] = 0\n    return facts.val_acc\n")
    with pytest.raises(ValueError, match=r"reward mode '.*mine.py:reward' failed: ValueError: .*read-only"):
        find_reward(f"{path}:reward")(make_facts(), SETTINGS)


REWARD = "\ndef reward(facts, settings):\n    return facts.acc_delta * 0 + PRICE\n"


def test_an_installed_module_comes_before_a_neighbour(user_file, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    user_file("raise RuntimeError('the wrong one')", "colorsys.py")
    file = user_file(f"import colorsys\nPRICE = colorsys.ONE_THIRD{REWARD}")
    assert find_reward(f"{file}:reward")(make_facts(acc_delta=0.0), SETTINGS)[0] == pytest.approx(1 / 3)


def test_module_and_function():
    assert find_reward("workers.rewards.sparse:reward")(make_facts(), SETTINGS)[0] == 0.0


def test_a_users_file_may_hold_dataclasses_and_shadows_no_module(user_file):
    path = user_file(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport numpy\n"
        "@dataclass\nclass Scale:\n    by: float = 2.0\n"
        "def scaled(facts, settings):\n    return Scale().by * numpy.asarray(facts.val_acc)\n",
        "json.py",
    )
    assert find_reward(f"{path}:scaled")(make_facts(), SETTINGS)[0] == 100.0


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("shapd", r"no reward mode 'shapd': did you mean 'shaped'\? choose from .*shaped"),
        ("zzz", r"no reward mode 'zzz': choose from .*path/to/file\.py:function or module:function"),
        ("_loss", "no reward mode '_loss'"),
        ("mine.py", "no reward mode 'mine.py'.*file.py:function"),
        (":reward", "expected path/to/file.py:function"),
        ("shaped:", "expected path/to/file.py:function"),
        ("nowhere.py:reward", "no file '/.*nowhere.py'"),
        ("no.such.module:reward", "importing 'no.such.module' failed: ModuleNotFoundError: No module named 'no'"),
        ("workers.rewards.sparse:rewards", "no function 'rewards'; available: reward$"),
    ],
)
def test_what_cannot_be_found(mode, said):
    with pytest.raises(ValueError, match=said) as caught:
        find_reward(mode)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def other(facts, settings): pass\n", "no function 'reward'; available: other$"),
        ("reward = 3\n", "no function 'reward'; available: none$"),
        ("def reward(facts): pass\n", r"must accept the arguments \(facts, settings\)"),
        ("def reward(\n", "running mine.py failed: SyntaxError"),
        ("import nothing_of_the_kind\n", "running mine.py failed: ModuleNotFoundError"),
    ],
)
def test_what_a_users_file_lacks(user_file, text, said):
    with pytest.raises(ValueError, match=said) as caught:
        find_reward(f"{user_file(text)}:reward")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("body", ["[1, 2]", "facts.op + 1", "(facts.op + 1).astype('float32')", "facts.op == 0"])
def test_any_numbers_will_do(user_file, body):
    function = find_reward(f"{user_file(f'def mine(facts, settings): return {body}')}:mine")
    values = function(make_facts((2, 3)), SETTINGS)
    assert (values.dtype, values.shape) == (np.float64, (2,))
    assert values[0] == 1.0


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
def test_a_users_function_is_called_before_anything_is_spent(user_file, body, problem):
    path = user_file(f"import numpy as np\ndef mine(facts, settings):\n    return {body}\n")
    found = user_reward(f"{path}:mine", 2, lambda doing: None)
    assert re.search(problem, found.problem)
    assert "\n" not in found.problem


def kept(reference: str, experiment_dir: Path):
    """As a run finds it: what the preflight loaded, copied."""
    reward: UserReward = user_reward(reference, 3, lambda doing: None)
    assert reward.problem == ""
    experiment_dir.mkdir(exist_ok=True)
    keep_rewards(experiment_dir, [reward])
    return partial(find_reward, load=as_planned([code_of(reward)], experiment_dir))


ALWAYS = REWARD.replace("acc_delta", "val_acc")  # finite at step 1, too
PACKAGE = {
    "": ("mine.py", {"mine.py": "import prices\nPRICE = prices.PRICE" + ALWAYS, "prices.py": "PRICE = 1\n"}),
    "package": (
        "own/mine.py",
        {
            "own/__init__.py": "", "own/mine.py": "from .prices import PRICE\n" + ALWAYS,
            "own/prices.py": "from own.deep.constants import PRICE\n", "own/deep/__init__.py": "",
            "own/deep/constants.py": "PRICE = 1\n",
        },
    ),
    "folder without __init__": (
        "mine.py",
        {"mine.py": "from deep.prices import PRICE\n" + ALWAYS, "deep/prices.py": "PRICE = 1\n"},
    ),
    "named as a library": (
        "random.py", {"random.py": "import random\nPRICE = 1\nassert random.random() < 1\n" + ALWAYS},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PACKAGE)
@pytest.mark.parametrize("gone", [True, False])
def test_a_run_has_the_reward_that_was_planned_whatever_became_of_it(tmp_path, monkeypatch, name, gone):
    main, files = PACKAGE[name]
    for file, text in files.items():
        (tmp_path / "project" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / file).write_text(text)
    reference = f"{tmp_path / 'project' / main}:reward"
    find = kept(reference, tmp_path / "run")
    monkeypatch.syspath_prepend(str(tmp_path / "project"))  # where the original would be found first
    for file, text in files.items():
        if gone:
            (tmp_path / "project" / file).unlink()
        else:
            (tmp_path / "project" / file).write_text(text.replace("PRICE = 1", "PRICE = -777"))
    before, path = dict(sys.modules), list(sys.path)
    facts = make_facts((2, 3), acc_delta=[2.0, 1.0])
    for _ in range(2):
        assert find(reference)(facts, SETTINGS).tolist() == [1.0, 1.0]
    assert sys.path == path
    assert {name: sys.modules[name] for name in before} == before


def test_a_copy_that_was_changed_is_refused(tmp_path, user_file):
    path = user_file("def reward(facts, settings):\n    return facts.val_acc * 1\n")
    find = kept(f"{path}:reward", tmp_path / "run")
    (copy,) = (tmp_path / "run").rglob("*.py")
    copy.write_text(copy.read_text() + "\n")
    with pytest.raises(ValueError, match=rf"its copy in {copy.parent} was changed since the experiment was planned"):
        find(f"{path}:reward")


def test_an_installed_module_that_was_changed_is_refused(tmp_path, monkeypatch):
    (tmp_path / "priced.py").write_text("def reward(facts, settings):\n    return facts.val_acc * 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    find = kept("priced:reward", tmp_path / "run")
    assert find("priced:reward")(make_facts(), SETTINGS)[0] == 50.0
    (tmp_path / "priced.py").write_text("def reward(facts, settings):\n    return facts.val_acc * 2\n")
    with pytest.raises(ValueError, match="module 'priced' was changed since the experiment was planned"):
        find("priced:reward")


def test_a_file_edited_between_preflight_and_copy_is_refused(tmp_path, user_file):
    path = user_file("def reward(facts, settings):\n    return facts.val_acc * 1\n")
    reward = user_reward(f"{path}:reward", 3, lambda doing: None)
    path.write_text(path.read_text() + "\n")
    with pytest.raises(UsageError, match="changed while the experiment was planned; launch it again"):
        keep_rewards(tmp_path, [reward])
    path.unlink()
    with pytest.raises(UsageError, match="changed while"):
        keep_rewards(tmp_path, [reward])


def test_data_is_read_where_it_lies(tmp_path, user_file):
    user_file("3.0", "price.txt")
    text = "from pathlib import Path\nPRICE = float((Path(__file__).parent / 'price.txt').read_text())\n" + ALWAYS
    path = user_file(text)
    assert kept(f"{path}:reward", tmp_path / "run")(f"{path}:reward")(make_facts(), SETTINGS)[0] == 3.0


def test_runs_in_threads_do_not_disturb_one_another(tmp_path):
    """Each has a neighbour of the same name; while one is imported another begins."""
    slow = "import threading\nthreading.Event().wait(0.005)\nPRICE = {}\n"
    finds = []
    for price in range(6):
        folder = tmp_path / str(price)
        folder.mkdir()
        (folder / "prices.py").write_text(slow.format(price))
        (folder / "mine.py").write_text("import prices\nPRICE = prices.PRICE" + ALWAYS)
        finds.append((f"{folder / 'mine.py'}:reward", kept(f"{folder / 'mine.py'}:reward", tmp_path / "run")))
    before, path, bytecode = set(sys.modules), list(sys.path), sys.dont_write_bytecode
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda one: one[1](one[0])(make_facts(), SETTINGS)[0], finds))
    assert found == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert (sys.path, sys.dont_write_bytecode, "prices" in sys.modules) == (path, bytecode, False)
    assert {name for name in set(sys.modules) - before if not name.startswith("user_reward_")} == set()
