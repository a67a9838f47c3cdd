"""Sources of a command's outcome, and names of trainers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.trainer import OutcomeSource, called, is_command, is_function, is_guarded, read_source


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("return", OutcomeSource("", "return")),
        ("eval/return", OutcomeSource("", "eval/return")),
        ("wandb", OutcomeSource("", "wandb")),
        ("tb:charts/return", OutcomeSource("", "charts/return", "tb")),
        (r"stdout:x=(\d+)", OutcomeSource("", r"x=(\d+)", "stdout")),
        ("wandb:charts/return", OutcomeSource("", "charts/return", "wandb")),
        ("r.json:return", OutcomeSource("r.json", "return")),
        ("a/log.csv:train:loss", OutcomeSource("a/log.csv", "train:loss")),
        ("wandb.json:x", OutcomeSource("wandb.json", "x")),
        ("a..b.json:x", OutcomeSource("a..b.json", "x")),
    ],
)
def test_an_outcome_source_is_parsed_from_each_of_its_forms(text: str, source: OutcomeSource) -> None:
    assert read_source(text) == source


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        ":return",
        "wandb:",
        "r.json:",
        "r.txt:return",
        "json:r.json:return",
        "csv:log.csv:return",
        "/r.json:return",
        "../r.json:return",
        "a/../../r.csv:return",
        "charts:return",
    ],
)
def test_an_invalid_outcome_source_is_refused_with_the_valid_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected NAME, FILE:NAME with a \.json, .*\.npz file below \{out\}, tb"):
        read_source(text)


@given(st.text() | st.from_regex(r"(\.\./|/|a/)*[a-z]*(\.json|\.csv|:)[a-z:]*", fullmatch=True))
def test_an_outcome_source_never_names_a_file_outside_its_folder(text: str) -> None:
    try:
        source = read_source(text)
    except ValueError:
        return
    assert source.key
    assert not source.path.startswith("/")
    assert ".." not in source.path.split("/")
    assert ":".join(filter(None, (source.tool, source.path, source.key))) == text


@pytest.mark.parametrize(
    ("reference", "command", "name"),
    [
        ("mine.py", False, "mine.py"),
        ("my folder/mine.py", False, "mine.py"),
        ("run{lr}.py", True, "run{lr}.py"),
        ("python train.py --lr {lr}", True, "train.py"),
        ("./train --lr {lr}", True, "train"),
        ("python -m lib.train {seed} {out}", True, "lib.train"),
        ("python 'my train.py' {seed}", True, "my train.py"),
        ("/my folder/train.py:train", False, "train.py:train"),
        ("lib.train:train", False, "lib.train:train"),
        ("python train.py:{name} {seed}", True, "python"),
        ("bash scripts/run.sh {seed}", True, "run.sh"),
    ],
)
def test_a_trainer_is_named_by_its_script(reference: str, command: bool, name: str) -> None:
    assert (is_command(reference), called(reference)) == (command, name)


@pytest.mark.parametrize(
    ("reference", "function", "guarded"),
    [
        ("train.py:train", True, True),
        ("my folder/maße.py:länge", True, True),
        ("lib.train:train", True, True),
        ("train.py", False, False),
        ("train.py:3", False, True),
        ("train.py:train {seed}", False, True),
        ("run{lr}.py:train", False, True),
        ("python train.py --lr {lr}", False, True),
    ],
)
def test_a_function_is_named_by_its_file_or_module(reference: str, function: bool, guarded: bool) -> None:
    assert (is_function(reference), is_guarded(reference)) == (function, guarded)
