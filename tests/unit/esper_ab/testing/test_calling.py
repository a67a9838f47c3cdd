"""A function is found by its module or its file, gets what it has parameters for, and must not have changed."""

import hashlib
import sys

import pytest

from esper_ab.testing.calling import call, loaded

SOURCE = """
from dataclasses import dataclass

@dataclass
class Agent:
    lr: float

def train(seed, lr=0.5):
    return seed * Agent(lr).lr

def takes_any(**values):
    return sorted(values)
"""
FILLED = {"seed": 3, "out": "runs/a", "device": "cpu"}


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    path = tmp_path / "a folder" / "my_training.py"
    path.parent.mkdir()
    path.write_text(SOURCE)
    return path


def place(file, name, module=""):
    return module, str(file), hashlib.sha256(file.read_bytes()).hexdigest(), name


def test_a_function_gets_the_values_that_it_has_parameters_for(file):
    assert call(place(file, "train"), {"lr": 2.0}, FILLED) == 6.0
    assert call(place(file, "takes_any"), {"lr": 2.0}, FILLED) == ["device", "lr", "out", "seed"]


def test_a_module_is_imported_by_its_name_where_that_leads_to_the_file(file, monkeypatch):
    monkeypatch.syspath_prepend(str(file.parent))
    assert loaded("my_training", str(file), "train").__module__ == "my_training"
    assert sys.modules["my_training"].__file__ == str(file)


@pytest.mark.parametrize("module", ["json", "no_such_module", "no.such.module", ""])
def test_a_file_is_loaded_where_the_name_leads_elsewhere(file, module):
    assert loaded(module, str(file), "train")(seed=2) == 1.0


def test_a_file_that_has_changed_is_refused(file):
    before = place(file, "train")
    file.write_text(SOURCE + "\n")
    with pytest.raises(ValueError, match=r"my_training\.py was changed while its runs trained; start the test again"):
        call(before, {}, FILLED)
