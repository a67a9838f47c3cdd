"""gate.toml is read strictly."""

from pathlib import Path

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.gate.example import EXAMPLE
from esper_ab.gate.gate_file import read_gate_file

SMALLEST = 'train = "train.py:train"\nlower = "loss"\nmargin = 1\nminutes = 2\n'


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "gate.toml"
        path.write_text(text, encoding="utf-8")
        return read_gate_file(path)

    return write


def test_the_smallest_file_is_a_question(written):
    question = written(SMALLEST).question()
    assert (question.train, question.outcome, question.better) == ("train.py:train", "loss", "lower")
    assert (question.claim, question.base, question.head) == ("not-worse", None, ".")


def test_flags_override_the_file(written):
    question = written(f'{SMALLEST}base = "v1"\n').question(base="v2", minutes=5.0, head=None)
    assert (question.base, question.minutes, question.head) == ("v2", 5.0, ".")


def test_tables_of_settings_become_dotted_keys(written):
    question = written(f"{SMALLEST}[settings]\nthreads = 2\n[settings.trainer]\nlr = 0.1\n").question()
    assert question.settings == {"threads": 2, "trainer.lr": 0.1}


def test_the_home_folder_may_be_written_in_short(written):
    assert written(f'{SMALLEST}references = "~/kept"\n').question().references == Path.home() / "kept"


def test_the_file_that_init_writes_is_read_with_and_without_its_comments(written):
    assert written(EXAMPLE).question().minutes == 10
    lines = [line.removeprefix("#") for line in EXAMPLE.splitlines() if not line.startswith("# ")]
    question = written("\n".join(lines)).question()
    assert question.settings["trainer.lr"] == 1e-3
    assert question.guardrails == ("lower wall_s margin 10%",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("margn = 1", "no key 'margn'; did you mean margin?"),
        ("seeds = 5", "settings of `launch` are in the table"),
        ("minutes = '3'", "minutes: expected a number, not '3'"),
        ("train = 3", "train: expected text, not 3"),
        ("guardrails = 'x'", "guardrails: expected a list of texts"),
        ("settings = 3", "settings: expected a table"),
        ("train = ", "not TOML"),
        (f"margin = {'9' * 5000}", "too many digits"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(written, text, message):
    with pytest.raises(UsageError, match=message) as caught:
        written(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing: train = .*; margin = .*; minutes = .*; higher = .* or lower"),
        (f"{SMALLEST}higher = 'x'", "one of them"),
        (SMALLEST.replace("minutes = 2", "minutes = 0"), "minutes: expected a positive number"),
    ],
)
def test_an_incomplete_question_is_refused(written, text, message):
    with pytest.raises(UsageError, match=message):
        written(text).question()


def test_a_missing_file_is_refused_with_the_command_that_writes_one(tmp_path):
    with pytest.raises(UsageError, match="init --gate"):
        read_gate_file(tmp_path / "gate.toml")
    with pytest.raises(UsageError, match="directory"):
        read_gate_file(tmp_path)
