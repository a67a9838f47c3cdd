from itertools import product

import pytest

from esper_ab.contracts.errors import Unanswered
from esper_ab.readers.run_names import read_names
from esper_ab.readers.run_patterns import infer_names


def names(form, *parts):
    return [form.format(*name_parts) for name_parts in product(*parts)]


SEEDS = range(3)


@pytest.mark.parametrize(
    ("paths", "pattern"),
    [
        (names("runs/{}-seed{}/monitor.csv", ["large", "small"], SEEDS), "{group}-seed{seed}"),
        (names("runs/{}/{}/monitor.csv", ["large", "small"], SEEDS), "{group}/{seed}"),
        (names("seed{}/{}/x.csv", SEEDS, ["large", "small"]), "seed{seed}/{group}"),
        (names("{}_s{}.csv", ["a", "b"], SEEDS), "{group}_s{seed}"),
        (names("{}{}.csv", ["small", "large"], SEEDS), "{group}{seed}"),
        (names("lr{}_{}", ["1e-3", "1e-4"], SEEDS), "{group}_{seed}"),
        (names("logs/{}/CartPole-v1_{}/ev.npz", ["ppo", "a2c"], SEEDS), "{group}/CartPole-v1_{seed}"),
        (names("Pole-v1__{}__{}__16953{}", ["dqn", "ppo"], SEEDS, ["12345"]), "Pole-v1__{group}__{seed}__*"),
        (names("{}_2024-01-02_12-30-11_run{}", ["dqn", "ppo"], SEEDS), "{group}_*_run{seed}"),
    ],
)
def test_an_inferred_name_pattern_gives_groups_and_seeds(paths, pattern):
    found_pattern, run_names = infer_names(paths, "files", seeds=True, groups=True)
    assert found_pattern == pattern
    assert len({name.group for name in run_names}) == 2
    assert {name.seed for name in run_names} == {"0", "1", "2"}
    assert read_names(paths, found_pattern) == run_names


@pytest.mark.parametrize(
    "paths",
    [
        ["a-x83", "b-y12", "a-k2"],
        ["small-seed0", "small-seed1", "large-s0", "large-s1"],
        ["small-seed0", "small-seed1", "large_0", "large_1"],
        ["a/0", "a/1", "b/deep/0", "b/deep/1"],
        ["zoo/a2c/CartPole-v1_1/x.npz", "sb3/ppo-seed3/x.npz"],
    ],
)
def test_the_user_is_asked_about_names_without_a_common_pattern(paths):
    with pytest.raises(Unanswered, match=r"do not tell by one pattern .*: --runs '\{group\}-s\{seed\}'"):
        infer_names(paths, "files", seeds=True, groups=True)


def test_the_question_about_an_ambiguous_pattern_lists_every_reading():
    paths = names("{}/{}_{}", ["ppo", "a2c"], ["Pole-v1", "Cart-v1"], SEEDS)
    with pytest.raises(Unanswered) as error:
        infer_names(paths, "files", seeds=True, groups=True)
    (question,) = error.value.questions
    patterns = [answer.value for answer in question.answers]
    assert patterns == ["{group}/{task}_{seed}", "{task}/{group}_{seed}", "{group}/{group}_{seed}"]
    assert read_names(paths, patterns[0])[0].task == "Pole-v1"
    assert read_names(paths, patterns[2])[0].group == "ppo/Pole-v1"


def test_names_are_read_only_for_missing_columns():
    assert infer_names(["model-7b.csv", "model-13b.csv"], "files", seeds=False, groups=True)[0] == "{group}"
    pattern, run_names = infer_names(["s0.csv", "s1.csv"], "files", seeds=True, groups=False)
    assert (pattern, [name.seed for name in run_names]) == ("s{seed}", ["0", "1"])


def test_two_files_are_read_as_two_groups_of_one_run():
    _, run_names = infer_names(["a/monitor.csv", "b/monitor.csv"], "files", seeds=True, groups=True)
    assert [(name.group, name.seed) for name in run_names] == [("a", ""), ("b", "")]
