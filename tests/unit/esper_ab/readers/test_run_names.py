import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.run_names import RunName, read_names, show_names

PATHS = [f"runs/{group}/{seed}/out/monitor.csv" for group in ("a", "b") for seed in (0, 1, 2, 5)]


@pytest.mark.parametrize("pattern", ["{group}/{seed}", "{group}/{seed}/...", "runs/{group}/{seed}/*"])
def test_every_form_of_a_name_pattern_gives_group_and_seed(pattern):
    assert read_names(PATHS, pattern)[:2] == [RunName(group="a", seed="0"), RunName(group="a", seed="1")]


def test_groups_and_seeds_read_from_names_are_shown_in_two_lines():
    pattern_line, seeds_line = show_names("{group}/{seed}", read_names(PATHS, "{group}/{seed}"))
    assert pattern_line.endswith("--runs '{group}/{seed}'")
    assert seeds_line == "a: seeds 0-2, 5; b: seeds 0-2, 5"


def test_only_some_of_many_group_names_are_shown():
    names = [RunName(group=f"g{place}", seed="x") for place in range(20)]
    assert show_names("*", names)[1].endswith("g7: seed x; and 12 more groups")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("{group}-s{seed}", r"--runs \{group\}-s\{seed\}: it does not fit runs/a/0/out/monitor.csv"),
        ("{model}/{seed}", r"\{model\} is unknown"),
        ("{task}", "it has neither"),
    ],
)
def test_an_unusable_name_pattern_is_refused(pattern, message):
    with pytest.raises(UsageError, match=message):
        read_names(PATHS, pattern)


def test_numbers_in_names_are_preferred_as_seeds():
    assert read_names(["my-algo-s1", "other-s2"], "{group}-s{seed}")[0] == RunName(group="my-algo", seed="1")
    assert read_names(["algo-sx", "other-sy"], "{group}-s{seed}")[0] == RunName(group="algo", seed="x")
