import sys
from typing import Any

import pytest
from support.outcomes.cells import executed

from esper_ab.api.function_source import source_with_globals
from esper_ab.contracts.errors import UsageError


def text_of(*cells: str) -> str:
    """Return the text of a file for `train`, which the last cell defines."""
    return source_with_globals(executed(*cells)["train"], "compare_training")


def called(text: str, *arguments: Any) -> Any:
    namespace: dict[str, Any] = {"__name__": "a file of its own"}
    exec(text, namespace)
    return namespace["train"](*arguments)


@pytest.mark.parametrize(
    "cells",
    [
        ("def train(seed): return seed + 1",),
        ("ONE = 1", "def train(seed): return seed + ONE"),
        ("import math\nimport os.path as where", "def train(seed): return seed + math.ceil(0.5) + len(where.join(''))"),
        ("from math import ceil as up", "def train(seed): return seed + up(0.5)"),
        ("def add(value): return value + 1", "def train(seed): return add(seed)"),
        ("def add(value): return value + 1", "also = add", "def train(seed): return also(seed)"),
        ("class Adder:\n    one = 1\n    def add(self, v): return v + self.one", "def train(v): return Adder().add(v)"),
        ("BASE = object\nclass Adder(BASE):\n    def add(self, v): return v+1", "def train(v): return Adder().add(v)"),
        ("ONE = 1", "def train(seed, one=ONE): return seed + one"),
        ("import functools", "@functools.lru_cache\ndef add(v): return v + 1", "def train(seed): return add(seed)"),
        ("def odd(v): return even(v - 1)\ndef even(v): return v == 0 or odd(v - 1)", "def train(v): return v + odd(3)"),
        ("import numpy as np\nONE = np.int64(1)", "def train(seed): return seed + ONE"),
        ("from pathlib import Path\nPLACE = Path('a')", "def train(seed): return seed + len(PLACE.name)"),
        ("import torch\nDEVICE = torch.device('cpu')", "def train(seed): return seed + len(DEVICE.type) - 2"),
        ("SIZES = {'a': [1, (2.5, None)], 'b': {3}}", "def train(seed): return seed + SIZES['a'][0]"),
        ("def train(seed): return train2(seed)\ndef train2(seed): return seed + 1",),
    ],
)  # fmt: skip
def test_the_written_file_defines_every_name_that_the_function_uses(cells: Any) -> None:
    assert called(text_of(*cells), 4) == 5


def test_annotations_of_a_function_are_not_evaluated() -> None:
    cells = ("from typing import Any\nclass Settings:\n    x: int = 1", "def train(seed: Settings) -> Any: return seed")
    text = text_of(*cells)
    assert "class Settings" not in text
    assert called(text, 4) == 4


def test_local_names_of_a_function_are_not_defined_globally() -> None:
    cells = ("import threading\nlock = threading.Lock()", "def train(seed):\n    lock = seed\n    return lock")
    assert called(text_of(*cells), 4) == 4


def test_the_written_file_adds_the_users_folders_to_the_path(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    text = text_of("def train(seed): return seed")
    monkeypatch.setattr(sys, "path", [])
    called(text, 4)
    assert str(tmp_path) in sys.path
    assert not any("site-packages" in folder for folder in sys.path)


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("import threading\nlock = threading.Lock()", "'lock', a lock"),
        ("import numpy as np\nlock = np.random.default_rng()", "'lock', a Generator"),
        ("import functools\nlock = functools.partial(max, 1)", "'lock', a partial"),
        ("class Model: ...\nlock = Model()", "'lock', a Model"),
        ("lock = list(range(10_000))", "'lock', a list"),
    ],
)
def test_a_global_that_a_file_cannot_define_is_refused_in_one_line(cell: str, what: str) -> None:
    with pytest.raises(UsageError) as error:
        text_of(cell, "def train(seed): return lock")
    assert str(error.value) == (
        f"compare_training: train uses {what}, which cannot be sent to other processes; make it inside the function, "
        "or put both into a module and import the function"
    )


def test_a_function_without_a_source_is_refused() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("def train(seed): return seed", namespace)
    with pytest.raises(
        UsageError, match="the source of train cannot be read, because it was typed at a prompt or piped"
    ):
        source_with_globals(namespace["train"], "compare_training")
