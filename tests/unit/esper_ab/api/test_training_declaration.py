"""What is declared from a function and its groups, and who is named in a refusal."""

import pytest

from esper_ab.api.training_declaration import declare_training
from esper_ab.contracts.errors import UsageError


def train(seed, lr=0.1):
    return seed * lr


def test_one_group_may_be_declared(tmp_path):
    settings = {"seeds": 6, "margin": 1.0, "outcome_better": "higher", "rehearsal": {"lr": 0.5}, "threads": 2}
    asked = declare_training("assert_learns", train, {"train": {"lr": 0.2}}, settings, tmp_path).asked
    assert [(group.name, group.settings.trainer) for group in asked.groups] == [("train", {"lr": 0.2})]
    assert (asked.rehearsal, asked.arithmetic.threads) == (("lr=0.5",), 2)
    assert asked.trainer == f"{__file__}:train"


@pytest.mark.parametrize(
    ("function", "groups", "settings"),
    [
        (lambda seed: seed, {"train": {}}, {}),
        (train, {"train": {"lr": 0.1}, 3: {}}, {}),
        (train, {"train": {}}, {"rehearsal": 3}),
        (train, {"train": {}}, {"code": "main"}),
    ],
)
def test_a_refusal_names_the_function_that_was_called(function, groups, settings, tmp_path):
    with pytest.raises(UsageError, match=r"^assert_learns: "):
        declare_training("assert_learns", function, groups, settings, tmp_path)
