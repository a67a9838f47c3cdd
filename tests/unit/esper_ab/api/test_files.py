"""Files that declare an experiment or a trainer, and errors of files with none, several or invalid ones."""

import sys

import pytest

from esper_ab.api.files import called_with_seed, defines_trainer, load_declaration
from esper_ab.contracts.errors import UsageError

HEAD = "from esper_ab import ABExperiment, ABVariant, create_experiment, run_ab_test\n"
MAKE = """
def make(name, lr=0.1):
    return create_experiment(name).add_variant("a", ppo__lr=lr).add_variant("b", reward="sparse").build()
"""


@pytest.fixture
def write_file(tmp_path):
    def write_text_with_head(text, name="file.py"):
        path = tmp_path / name
        path.write_text(HEAD + MAKE + text)
        return path

    yield write_text_with_head
    sys.modules.pop("elsewhere", None)  # imported by a file of these tests


def location(path, line):
    """Return path and number of this line of a test's text."""
    return f"{path}:{line + len((HEAD + MAKE).splitlines())}: "


@pytest.mark.parametrize(
    "text",
    [
        'experiment = make("x")',
        'experiment: ABExperiment = make("x")',
        'def experiment():\n    return make("x")',
        'def get_experiment():\n    return make("x")',
        'def create_x_experiment():\n    return make("x")',
        'def create_x_experiment(lr=0.1):\n    return make("x", lr)\nexperiment = create_x_experiment()',
        'if True:\n    experiment = make("x")\nelse:\n    experiment = None',
        'try:\n    import nothing_like_it\nexcept ImportError:\n    pass\nexperiment, other = make("x"), 3',
        'def create_any_experiment(lr):\n    return make("x", lr)\nexperiment = create_any_experiment(0.1)',
        'class Mine(ABExperiment):\n    def __init__(self):\n        super().__init__("x", '
        'variants=make("x").variants)',
    ],
)
def test_an_experiment_is_found_in_every_form_of_declaration(write_file, text):
    declaration = load_declaration(write_file(text))
    assert declaration.asked.name == "x"
    assert [group.name for group in declaration.asked.groups] == ["a", "b"]
    assert not defines_trainer(write_file(f"def train(run): ...\n{text}"))


@pytest.mark.parametrize(
    "text",
    [
        "def train(run): ...",
        "from lib import train",
        "import lib as train",
        "train = print",
        "@print\ndef train(run): ...",
        "raise SystemExit\ndef train(run): ...",
        "def train(run): ...\ndef create_environment(): ...",
    ],
)
def test_a_file_with_a_train_function_is_a_trainer(write_file, text):
    assert defines_trainer(write_file(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def training(run): ...",
        "class A:\n    def train(self): ...",
        "import train.one",
    ],
)
def test_a_file_without_a_train_function_is_not_a_trainer(write_file, text):
    assert not defines_trainer(write_file(text))


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("def train(seed, lr): ...", True),
        ("def train(lr, *, seed=0): ...", True),
        ("raise SystemExit\ndef train(seed): ...", True),
        ("def train(run): ...\ndef evaluate(run, state): ...", False),
        ("def other(seed): ...", False),
        ("from lib import train", False),
    ],
)
def test_a_train_function_with_a_seed_is_called_once_per_run(write_file, text, called):
    assert called_with_seed(write_file(text)) is called


def test_an_imported_experiment_is_not_the_declaration_of_a_file(write_file):
    write_file('def get_experiment():\n    return make("there")', "elsewhere.py")
    own_file = write_file('from elsewhere import *\ncreate_x_experiment = lambda: make("x")')
    assert load_declaration(own_file).asked.name == "x"
    own_file.write_text("from elsewhere import get_experiment\n")
    with pytest.raises(UsageError, match=r"no experiment of its own \(it imports get_experiment\)"):
        load_declaration(own_file)


@pytest.mark.parametrize(
    "change",
    [
        'make("x", 0.2)',
        'make("y")',
        'create_experiment("x", "why").add_variant("a", ppo__lr=0.1).add_variant("b", reward="sparse").build()',
    ],
)
def test_different_declarations_in_one_file_are_refused(write_file, change):
    head = 'experiment = make("x")\ndef get_experiment():\n    return '
    assert load_declaration(write_file(head + 'make("x")')).asked.name == "x"
    with pytest.raises(UsageError, match="several experiments"):
        load_declaration(write_file(head + change))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("import nothing_like_it", 1, "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("\nexperiment = mak('x')", 2, "NameError: name 'mak' is not defined"),
        ("raise RuntimeError('two\\nlines \\x1b[31m')", 1, "RuntimeError: two"),
    ],
)
def test_an_error_in_the_file_is_reported_in_one_line_with_its_location(write_file, text, line, message):
    path = write_file(text)
    with pytest.raises(UsageError) as caught:
        load_declaration(path)
    assert str(caught.value).startswith(location(path, line) + message)
    assert "\n" not in str(caught.value)


def test_an_error_in_an_imported_module_is_located_at_the_calling_line(write_file):
    write_file("def broken():\n    raise ValueError('deep')", "elsewhere.py")
    path = write_file("from elsewhere import broken\nexperiment = broken()")
    with pytest.raises(UsageError) as caught:
        load_declaration(path)
    assert str(caught.value) == location(path, 2) + "ValueError: deep"


def test_the_output_of_an_experiment_file_is_kept_out_of_stdout(write_file, tmp_path, capsys):
    load_declaration(write_file("print('hello')\nexperiment = make('x')"))
    assert capsys.readouterr().out == ""
    assert str(tmp_path) not in sys.path
