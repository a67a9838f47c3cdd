import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.experiment_name import check_name
from esper_ab.settings.parts import as_part, folder_of, grid, parse_parts, share_of
from esper_ab.settings.request import read_request
from esper_ab.settings.settings_file import read_toml


def _parse(tmp_path, text="", **options):
    (tmp_path / "asked.toml").write_text(text)
    return parse_parts(read_request(options, read_toml(tmp_path / "asked.toml")))


def test_a_request_of_one_task_without_a_grid_has_one_part(tmp_path):
    assert [part.name for part in _parse(tmp_path)] == [""]
    assert [part.name for part in _parse(tmp_path, task="digits")] == [""]
    assert [part.name for part in _parse(tmp_path, 'task = "digits"')] == [""]


def test_every_task_is_a_part_with_its_share_of_alpha(tmp_path):
    parts = _parse(
        tmp_path,
        task="digits,gym:CartPole-v1",
        group=("a:ppo.lr=1e-3", "b:ppo.lr=1e-4"),
        margin="gym:CartPole-v1=20, digits = 1",
        seeds="12",
        alpha=0.06,
    )
    assert [part.name for part in parts] == ["digits", "gym:CartPole-v1"]
    assert [part.asked.task for part in parts] == ["digits", "gym:CartPole-v1"]
    assert [part.asked.margin for part in parts] == [1.0, 20.0]
    assert [part.asked.episodes for part in parts] == [3, 50], "each has the defaults of its kind"
    assert {part.asked.alpha for part in parts} == {0.06}
    planned_parts = [as_part(part.asked, len(parts)) for part in parts]
    assert {planned_part.alpha for planned_part in planned_parts} == {0.06 / 3}
    assert {planned_part.looks for planned_part in planned_parts} == {(12,)}


def test_a_file_can_have_settings_for_a_single_task(tmp_path):
    parts = _parse(
        tmp_path,
        'episodes = 5\nseeds = 7\n[tasks.digits]\nmargin = 3.0\n[tasks."gym:CartPole-v1"]\nmargin = 20.0\n'
        "episodes = 9\n[group.a]\n[group.b.ppo]\nlr = 1e-3\n",
    )
    assert [(part.name, part.asked.episodes, part.asked.margin, part.asked.seeds) for part in parts] == [
        ("digits", 5, 3.0, 7),
        ("gym:CartPole-v1", 9, 20.0, 7),
    ]


def test_flags_override_the_tasks_of_a_file(tmp_path):
    text = 'task = ["digits", "mixture"]\n'
    assert [part.name for part in _parse(tmp_path, text)] == ["digits", "mixture"]
    assert [part.name for part in _parse(tmp_path, text, task="digits,synthetic")] == ["digits", "synthetic"]
    assert [part.name for part in _parse(tmp_path, text, task="digits")] == [""]


def test_a_grid_has_a_part_per_cell(tmp_path):
    parts = _parse(tmp_path, grid=("ppo.lr=1e-4,1e-3", "episodes=2,4"), groups="shaped,simplified")
    assert [part.name for part in parts] == [
        "ppo.lr=1e-4, episodes=2",
        "ppo.lr=1e-4, episodes=4",
        "ppo.lr=1e-3, episodes=2",
        "ppo.lr=1e-3, episodes=4",
    ]
    for part in parts:
        lrs = {group.settings.ppo.lr for group in part.asked.groups}
        assert f"ppo.lr={lrs.pop():.0e}, episodes={part.asked.episodes}".replace("e-0", "e-") == part.name
        assert lrs == set()


def test_a_grid_over_several_tasks_has_every_cell_for_every_task(tmp_path):
    parts = _parse(tmp_path, grid=("ppo.lr=1e-4,1e-3",), task="digits,mixture", margin="digits=1,mixture=4")
    assert [(part.name, part.asked.margin) for part in parts] == [
        ("digits, ppo.lr=1e-4", 1.0),
        ("digits, ppo.lr=1e-3", 1.0),
        ("mixture, ppo.lr=1e-4", 4.0),
        ("mixture, ppo.lr=1e-3", 4.0),
    ]


def test_a_bracketed_list_in_a_grid_is_one_value():
    assert grid(("growth.blueprints=[norm,attention],[norm]",)) == (
        ("growth.blueprints=[norm,attention]",),
        ("growth.blueprints=[norm]",),
    )
    assert grid(()) == ()


@pytest.mark.parametrize("name", ["digits", "gym:CartPole-v1", "ppo.lr=1e-4, episodes=2", "/a/b.py:make", "ä" * 9])
def test_every_part_has_its_own_folder(name):
    check_name(folder_of(name))
    assert folder_of(name) != folder_of(f"{name}:")


@pytest.mark.parametrize(
    ("options", "group"),
    [
        ({"grid": ("reward=shaped,sparse",), "groups": "simplified", "group": ("b:ppo.lr=1",)}, "simplified"),
        (
            {
                "grid": ("trainer.lr=1,2",),
                "trainer": "train --seed {seed} --lr {lr}",
                "outcome": "wandb:x",
                "margin": 1.0,
                "outcome_better": "higher",
                "group": ("a:trainer.lr=3", "b:trainer.n=4"),
            },
            "a",
        ),
    ],
)
def test_a_grid_setting_cannot_differ_between_groups(tmp_path, options, group):
    """Otherwise the groups of a pair would differ, and all cells of this group would be the same."""
    with pytest.raises(UsageError, match=f"--grid .*: group '{group}' has its own .*, but all groups in a cell"):
        _parse(tmp_path, **options)


@pytest.mark.parametrize(
    ("parts", "groups", "has_control", "shares"),
    [(2, 2, False, 3), (2, 2, True, 3), (2, 3, False, 7), (2, 3, True, 5), (4, 4, False, 25), (4, 4, True, 13)],
)
def test_alpha_is_shared_by_all_comparisons_and_their_means(parts, groups, has_control, shares):
    assert share_of(0.05, parts, groups, controlled=has_control) == pytest.approx(0.05 / shares)


@pytest.mark.parametrize(
    "text",
    [
        'task = ["envs.py:one_env", "gym:CartPole-v1"]\n',
        '[tasks."envs.py:one_env"]\nepisodes = 4\n[tasks."gym:CartPole-v1"]\nepisodes = 4\n',
    ],
)
def test_functions_among_the_tasks_of_a_file_are_those_beside_the_file(tmp_path, monkeypatch, text):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    function, registered = _parse(tmp_path, "groups = ['a=env', 'b=env']\nmargin = 1.0\n" + text)
    assert function.asked.task == f"{tmp_path / 'envs.py'}:one_env"
    assert registered.asked.task == "gym:CartPole-v1"


def test_functions_among_the_tasks_of_the_command_line_are_those_of_the_working_directory(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    options = {"task": "envs.py:one_env,gym:CartPole-v1", "margin": 1.0}
    function, _ = _parse(tmp_path, "groups = ['a=env', 'b=env']\ntask = ['digits', 'mixture']\n", **options)
    assert function.asked.task == f"{elsewhere / 'envs.py'}:one_env"
