"""The settings of all parts of an experiment in one file."""

import tomllib

from support.journals.over_tasks import parts_of
from support.journals.replications import APART
from support.journals.synthetic import Shape

from esper_ab.contracts.settings import PPOSettings
from esper_ab.plan.joint_toml import joint_toml
from esper_ab.settings.settings_file import read_toml


def experiments_of(parts):
    return [part.plan().experiment for part in parts.values()]


def tree_of(experiments, **options):
    return tomllib.loads(joint_toml(experiments, alpha=0.05, **options))


def test_settings_that_all_tasks_have_alike_are_named_once():
    parts = parts_of(1)
    parts["mixture"] = parts_of(1, settings={"margin": 3.0})["mixture"]
    tree = tree_of(experiments_of(parts))
    assert tree["task"] == ["digits", "mixture"]
    assert tree["alpha"] == 0.05  # and not a part's share
    assert tree["rng_seed"] == 1
    assert {"looks", "name"}.isdisjoint(tree)
    assert {task: table["margin"] for task, table in tree["tasks"].items()} == {"digits": 2.0, "mixture": 3.0}
    assert tree["group"]["shaped"]["reward"]["mode"] == "shaped"


def test_a_setting_of_all_groups_on_one_task_is_in_the_table_of_the_task():
    slow = {name: Shape(mode=shape.mode, ppo=PPOSettings(lr=1e-5)) for name, shape in APART.items()}
    tree = tree_of(experiments_of(parts_of(1, {"digits": APART, "mixture": slow})))
    assert tree["tasks"]["mixture"]["ppo"]["lr"] == 1e-5
    assert "lr" not in tree["group"]["shaped"]["ppo"]


def test_groups_that_differ_otherwise_from_task_to_task_have_no_common_file():
    slow = {**APART, "shaped": Shape(ppo=PPOSettings(lr=1e-5))}
    assert joint_toml(experiments_of(parts_of(1, {"digits": APART, "mixture": slow})), alpha=0.05) == ""


def test_a_grid_is_named_by_its_axes_and_is_no_setting_of_groups():
    cells = [
        experiments_of(parts_of(1, {n: Shape(mode=s.mode, ppo=PPOSettings(lr=lr)) for n, s in APART.items()}))[0]
        for lr in (1e-4, 1e-3)
    ]
    tree = tree_of(cells, grid=("ppo.lr=1e-4,1e-3",), scores="0..100")
    assert (tree["task"], tree["grid"], tree["scores"]) == ("digits", ["ppo.lr=1e-4,1e-3"], "0..100")
    assert "lr" not in tree["group"]["shaped"]["ppo"]
    assert "tasks" not in tree


def test_without_the_axes_of_a_grid_there_is_no_common_file():
    cells = [experiments_of(parts_of(1, settings={"margin": margin}))[0] for margin in (2.0, 3.0)]
    assert joint_toml(cells, alpha=0.05) == ""


def test_the_file_is_read_as_settings_of_a_launch(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(joint_toml(experiments_of(parts_of(1)), alpha=0.05))
    assert read_toml(path).groups == ("shaped", "simplified")
