"""What `assert_not_worse` refuses before anything is trained."""

import re

import pytest

from esper_ab.pytest_plugin import session
from esper_ab.testing import assert_not_worse
from esper_ab.testing.not_worse import _groups


def train(seed, lr=0.5):
    return seed * lr


def inner_function():
    def inner(seed):
        return seed

    return inner


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (train, {"against": 3}, "against: expected a function, settings as in"),
        ("train.py:train", {"against": train}, "against is a function, so train has to be one, too, not 'train.py:tr"),
        (train, {"against": {}, "higher": "a", "lower": "b"}, "higher and lower exclude each other"),
        (train, {"against": {}, "margin": 0}, "margin: expected a positive number, not 0"),
        (train, {"against": {}, "minutes": "5"}, "minutes: expected a positive number, not '5'"),
        (train, {"against": {}, "seeds": 5}, "no argument 'seeds'"),
        (train, {"against": train}, "train and against are one function, so nothing is compared; give another fun"),
        (train, {"against": {}}, "against changes no setting, so nothing is compared; give settings with other val"),
        (train, {"against": {"lr": 0.5}, "settings": {"lr": 0.5}}, "against changes no setting"),
        (lambda seed: seed, {"against": {}}, "a lambda cannot be sent to other processes"),
        (lambda seed: seed, {"against": train}, "a lambda cannot be sent to other processes"),
        (inner_function(), {"against": "main"}, "no commit has it; define it in a module to compare it with main"),
        (train, {"against": "no-such-branch"}, "has no commit, branch or tag 'no-such-branch'"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused_in_one_line(function, arguments, words, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_sessions", [])  # so that a failure is an AssertionError
    monkeypatch.chdir(tmp_path.parent if arguments["against"] != "no-such-branch" else __file__.rpartition("/")[0])
    with pytest.raises(AssertionError, match=re.escape(words)) as failure:
        assert_not_worse(function, **{"margin": 1, "minutes": 3, **arguments})
    assert "\n" not in str(failure.value)


def test_a_group_with_other_settings_is_named_after_them():
    groups = _groups(train, {"lr": 0.2, "kind": "a b"}, {"settings": {"lr": 0.1}})
    assert groups == {"train": {"lr": 0.1}, "lr=0.2+kind=a-b": {"lr": 0.2, "kind": "a b"}}
