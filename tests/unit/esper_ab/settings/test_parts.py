import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.experiment_name import check_name
from esper_ab.settings.parts import as_part, folder_of, grid, parse_parts, share_of
from esper_ab.settings.request import read_request
from esper_ab.settings.settings_file import read_toml


def _asked(tmp_path, text="", **options):
    (tmp_path / "asked.toml").write_text(text)
    return parse_parts(read_request(options, read_toml(tmp_path / "asked.toml")))


def test_one_task_without_a_grid_is_one_part_without_a_name(tmp_path):
    assert [part.name for part in _asked(tmp_path)] == [""]
    assert [part.name for part in _asked(tmp_path, task="digits")] == [""]
    assert [part.name for part in _asked(tmp_path, 'task = "digits"')] == [""]


def test_every_task_is_a_part_at_its_share_of_alpha_with_one_look(tmp_path):
    found = _asked(
        tmp_path,
        task="digits,gym:CartPole-v1",
        group=("a:ppo.lr=1e-3", "b:ppo.lr=1e-4"),
        margin="gym:CartPole-v1=20, digits = 1",
        seeds="12",
        alpha=0.06,
    )
    assert [part.name for part in found] == ["digits", "gym:CartPole-v1"]
    assert [part.asked.task for part in found] == ["digits", "gym:CartPole-v1"]
    assert [part.asked.margin for part in found] == [1.0, 20.0]
    assert [part.asked.episodes for part in found] == [3, 50], "each has the defaults of its kind"
    assert {part.asked.alpha for part in found} == {0.06}
    planned = [as_part(part.asked, len(found)) for part in found]
    assert {asked.alpha for asked in planned} == {0.06 / 3}
    assert {asked.looks for asked in planned} == {(12,)}


def test_a_file_may_say_what_holds_for_one_task_only(tmp_path):
    found = _asked(
        tmp_path,
        'episodes = 5\nseeds = 7\n[tasks.digits]\nmargin = 3.0\n[tasks."gym:CartPole-v1"]\nmargin = 20.0\n'
        "episodes = 9\n[group.a]\n[group.b.ppo]\nlr = 1e-3\n",
    )
    assert [(part.name, part.asked.episodes, part.asked.margin, part.asked.seeds) for part in found] == [
        ("digits", 5, 3.0, 7),
        ("gym:CartPole-v1", 9, 20.0, 7),
    ]


def test_a_list_in_a_file_names_tasks_and_flags_win(tmp_path):
    text = 'task = ["digits", "mixture"]\n'
    assert [part.name for part in _asked(tmp_path, text)] == ["digits", "mixture"]
    assert [part.name for part in _asked(tmp_path, text, task="digits,synthetic")] == ["digits", "synthetic"]
    assert [part.name for part in _asked(tmp_path, text, task="digits")] == [""]


def test_a_grid_has_a_part_per_cell_in_which_all_groups_have_the_same_settings(tmp_path):
    found = _asked(tmp_path, grid=("ppo.lr=1e-4,1e-3", "episodes=2,4"), groups="shaped,simplified")
    assert [part.name for part in found] == [
        "ppo.lr=1e-4, episodes=2",
        "ppo.lr=1e-4, episodes=4",
        "ppo.lr=1e-3, episodes=2",
        "ppo.lr=1e-3, episodes=4",
    ]
    for part in found:
        lrs = {group.settings.ppo.lr for group in part.asked.groups}
        assert f"ppo.lr={lrs.pop():.0e}, episodes={part.asked.episodes}".replace("e-0", "e-") == part.name
        assert lrs == set()


def test_a_grid_over_several_tasks_has_every_cell_of_every_task(tmp_path):
    found = _asked(tmp_path, grid=("ppo.lr=1e-4,1e-3",), task="digits,mixture", margin="digits=1,mixture=4")
    assert [(part.name, part.asked.margin) for part in found] == [
        ("digits, ppo.lr=1e-4", 1.0),
        ("digits, ppo.lr=1e-3", 1.0),
        ("mixture, ppo.lr=1e-4", 4.0),
        ("mixture, ppo.lr=1e-3", 4.0),
    ]


def test_values_with_commas_in_brackets_are_one_value():
    assert grid(("growth.blueprints=[norm,attention],[norm]",)) == (
        ("growth.blueprints=[norm,attention]",),
        ("growth.blueprints=[norm]",),
    )
    assert grid(()) == ()


@pytest.mark.parametrize("name", ["digits", "gym:CartPole-v1", "ppo.lr=1e-4, episodes=2", "/a/b.py:make", "ä" * 9])
def test_every_part_has_a_folder_of_its_own(name):
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
def test_a_setting_that_a_grid_varies_is_no_groups_own(tmp_path, options, group):
    """Else the two groups of a pair had different settings, and the cells of that group were one cell."""
    with pytest.raises(UsageError, match=f"--grid .*: group '{group}' has its own .*, but all groups in a cell"):
        _asked(tmp_path, **options)


@pytest.mark.parametrize(
    ("parts", "groups", "controlled", "shares"),
    [(2, 2, False, 3), (2, 2, True, 3), (2, 3, False, 7), (2, 3, True, 5), (4, 4, False, 25), (4, 4, True, 13)],
)
def test_a_part_holds_one_share_of_those_of_all_comparisons_and_their_means(parts, groups, controlled, shares):
    assert share_of(0.05, parts, groups, controlled=controlled) == pytest.approx(0.05 / shares)
