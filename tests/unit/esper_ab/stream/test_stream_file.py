"""stream.toml: the question, and one line for everything that is wrong with it."""

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.stream.stream_file import read_stream_file

GOOD = "train = 'train.py:train'\nhigher = 'score'\n"


def read(tmp_path, text):
    path = tmp_path / "stream.toml"
    path.write_text(text, encoding="utf-8")
    return read_stream_file(path, tmp_path)


def test_a_short_file_has_defaults(tmp_path):
    question = read(tmp_path, GOOD)
    assert (question.better, question.outcome, question.folder) == ("higher", "score", str(tmp_path))
    assert (question.margin, question.alpha, question.seeds, question.incumbent_seeds) == (0.0, 0.05, 20, 6)
    assert question.looks == (4, 8, 14, 20)
    assert not question.code


def test_every_key_is_read(tmp_path):
    text = GOOD.replace("higher", "lower") + (
        "margin = 1\nalpha = 0.1\nseeds = 6\nincumbent_seeds = 0\ncode = '.'\nunchanged = ['./eval.py', 'envs/']\n"
        "shape = 'any'\noutcome_range = [0, 500]\n"
        "[settings]\ntrainer.lr = 0.1\nmax_parallel = 2\n[launcher]\nname = 'inline'\n"
    )
    question = read(tmp_path, text)
    assert question.sign == -1.0
    assert question.unchanged == ("eval.py", "envs")
    assert question.settings == {"trainer.lr": 0.1, "max_parallel": 2}
    assert question.launcher == {"name": "inline"}
    assert question.looks == (4, 6)
    assert question.test(0.01).size == 500.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "missing: train = "),
        (GOOD + "lower = 'loss'\n", "higher = 'NAME' or lower = 'NAME', one of them"),
        (GOOD + "sedes = 3\n", "no key 'sedes'; did you mean seeds"),
        (GOOD + "max_parallel = 3\n", "settings of `launch` are in the table [settings]: max_parallel"),
        (GOOD + "seeds = 5\n", "seeds: expected a whole number from 6 to 1000, not 5"),
        (GOOD + "seeds = true\n", "seeds: expected a whole number"),
        (GOOD + "margin = -1\n", "margin: expected a number of at least 0, not -1"),
        (GOOD + "alpha = 0.5\n", "alpha: expected a number above 0 and below 0.5"),
        (GOOD + "incumbent_seeds = 1\n", "incumbent_seeds: expected 0, or a whole number from 2"),
        (GOOD + "unchanged = ['/etc/passwd']\n", "unchanged: name files and folders below"),
        (GOOD + "unchanged = 'evaluate.py'\n", "unchanged: expected a list of files and folders"),
        (GOOD + "shape = 'any'\n", "shape = 'any' needs outcome_range"),
        (GOOD + "outcome_range = [5, 1]\n", "outcome_range: expected two numbers, the smaller one first"),
        (GOOD + "[launcher]\nnme = 'ray'\n", "[launcher]: unknown key 'nme'"),
        ("train = [\n", "not TOML"),
    ],
)
def test_an_invalid_file_is_refused_in_one_line(tmp_path, text, words):
    with pytest.raises(UsageError) as refusal:
        read(tmp_path, text)
    assert str(refusal.value).startswith(str(tmp_path / "stream.toml"))
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value).replace(text, "")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"stream\.toml: No such file"):
        read_stream_file(tmp_path / "stream.toml", tmp_path)
