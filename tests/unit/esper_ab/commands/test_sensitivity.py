"""A comparison over several settings: the grid, the folders, and when verdicts agree."""

from __future__ import annotations

import pytest

from esper_ab.analysis.sensitivity import Point, PointComparison, multiplicity, summarise, summary_text
from esper_ab.commands.sensitivity import combine_settings, grid_axes, name_folder
from esper_ab.contracts.errors import UsageError
from esper_ab.plan.run_directory import check_name


def points(*verdicts: str | None) -> list[Point]:
    """One comparison at each point; None: still to come."""
    return [
        Point(
            setting={"ppo.lr": f"{index}e-3"}, run=f"{index}", digest="0",
            comparisons=() if verdict is None else (
                PointComparison(a="a", b="b", verdict=verdict, pairs=6, mean=1.0, low=0.5, high=1.5),
            ),
        )
        for index, verdict in enumerate(verdicts, start=1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("verdicts", "agrees", "words"),
    [
        (("BETTER", "BETTER"), True, "agrees: BETTER at every one of the 2 points"),
        (("BETTER", "BETTER, BELOW MARGIN"), True, "agrees: BETTER"),
        (("BETTER", "WORSE"), False, "BETTER at ppo.lr=1e-3; WORSE at ppo.lr=2e-3. The answer depends on the setting"),
        (("BETTER", "EQUIVALENT", "BETTER"), False, "BETTER at ppo.lr=1e-3 and ppo.lr=3e-3; EQUIVALENT at ppo.lr=2e-3"),
        (("BETTER", "INCONCLUSIVE"), False, "does not agree everywhere"),
        (("INCONCLUSIVE", "NO INFERENCE"), None, "no point carries a verdict"),
        (("BLOCKED", "BLOCKED"), None, "no point carries a verdict"),
        (("BETTER", None), None, "1 of 2 points are still to come; so far BETTER at ppo.lr=1e-3"),
        (("BETTER", "WORSE", None), False, "does not agree"),
    ],
)
def test_when_verdicts_agree(verdicts: tuple[str | None, ...], agrees: bool | None, words: str) -> None:
    (found,) = summarise(points(*verdicts), 0.05).agreements
    assert found.agrees is agrees
    assert words in found.sentence


def test_the_table_has_every_point_and_says_what_several_looks_cost() -> None:
    text = summary_text(summarise(points("BETTER", None), 0.05))
    lines = text.splitlines()
    assert lines[1].split() == ["ppo.lr=1e-3", "a", "-", "b", "+1.00", "[+0.50,", "+1.50]", "6", "BETTER"]
    assert lines[2].split() == ["ppo.lr=2e-3", "to", "come"]
    assert "no verdict is given over all points" in " ".join(text.split())


def test_chance_of_a_false_verdict_is_bounded_by_the_sum_and_by_one() -> None:
    assert "up to 30%" in multiplicity(6, 0.05)
    assert "up to 100%" in multiplicity(40, 0.05)


def test_the_grid_is_every_combination() -> None:
    axes = grid_axes("3,6", "3e-4,1e-3", ("growth.blueprints=[norm,attention],[norm]",))
    grid = combine_settings(axes)
    assert len(grid) == 8
    assert len({tuple(setting.values()) for setting in grid}) == 8
    assert grid[1] == {"episodes": "3", "ppo.lr": "3e-4", "growth.blueprints": "[norm]"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((None, None, ()), "nothing is varied"),
        (("3", "1e-3", ()), "nothing is varied"),
        (("3,3", None, ()), "--episodes: expected different values"),
        (("3,", None, ()), "--episodes: expected different values"),
        ((None, None, ("ppo.lr",)), "as in --over ppo.epochs=2,4"),
        ((None, "1e-3,2e-3", ("ppo.lr=1e-4,1e-5",)), "ppo.lr is varied twice"),
        ((None, None, ("reward=shaped,sparse", "reward.mode=sparse,minimal")), "reward.mode is varied twice"),
    ],
)
def test_a_grid_that_is_none_is_refused(given: tuple, words: str) -> None:
    with pytest.raises(UsageError, match=words.replace(".", r"\.").replace("[", r"\[")):
        grid_axes(*given)


def test_folders_are_names_and_differ() -> None:
    long = {"growth.blueprints": "[" + ",".join(["conv_light"] * 30) + "]"}
    longer = {"growth.blueprints": "[" + ",".join(["conv_light"] * 31) + "]"}
    names = [name_folder(one) for one in ({"a": "x/y"}, {"a": "x.y"}, {"a": "x y"}, long, longer)]
    for name in names:
        check_name(name)
    assert len(set(names)) == len(names)
    assert name_folder({"episodes": "3", "ppo.lr": "1e-3"}) == "episodes-3_ppo.lr-1e-3"
