"""The kind of campaign that an argument requests, and one message about all missing flags."""

import shlex

import msgspec
import pytest
from support.commands.in_process import esper_ab

from esper_ab.api.files import load_declaration
from esper_ab.commands._launch_flags import LaunchFlags
from esper_ab.commands._requested_campaign import read_what, tracking_of

FILES = {
    "train.py": "def train(run): ...\n",
    "my runs/train.py": "def train(run): ...\n",
    "a.toml": "episodes = 7\n",
    "my runs/a.toml": "episodes = 7\n",
    "mine.toml": 'trainer = "train.py"\nmargin = 1.0\n',
    "a.py": "from esper_ab import create_experiment\n"
    "experiment = create_experiment('x').add_variant('a').add_variant('b', ppo__lr=2).build()\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "target",
    [
        "train.py",
        "my runs/train.py",
        "python train.py --seed {seed}",
        "./train.sh {seed}",
        "run-{seed}",
        "python {seed} train.py",
        "python {seed} a.toml",
        "python --config a.toml {seed}",
    ],
)
def test_a_file_with_a_train_function_or_a_command_is_a_trainer(folder, target):
    declaration, request = read_what(LaunchFlags(what=target))
    assert (request.value_of("trainer"), request.value_of("episodes")) == (
        target if "{" in target else str(folder / target),
        None,
    )
    assert not declaration.file.common


@pytest.mark.parametrize("target", ["a.toml", "my runs/a.toml", "./a.toml", "a.py"])
def test_a_toml_file_or_a_python_file_without_train_is_an_experiment(folder, target):
    declaration, request = read_what(LaunchFlags(what=target))
    assert request.value_of("trainer") is None
    assert (request.value_of("episodes"), declaration.asked.name) == (
        (7, "") if target.endswith("toml") else (None, "x")
    )


def test_a_request_without_a_file_has_only_the_settings_of_flags():
    _, request = read_what(LaunchFlags(episodes=3))
    assert (request.value_of("trainer"), request.value_of("episodes")) == (None, 3)


COMMAND = "'python my.py --note \"a b\" --lr {lr} {seed} {out}'"


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("launch train.py", "--vary --higher --margin"),
        (f"launch {COMMAND}", "--vary --higher --margin"),
        (f"launch {COMMAND} --vary lr=1,2", "--higher --margin"),
        (f"launch {COMMAND} --vary lr=1,2 --lower loss", "--margin"),
        (f"launch {COMMAND} --margin 1", "--vary --higher"),
        ("launch train.py --group slow:trainer.lr=1", "--higher --margin"),
        ("launch train.py --groups a,b", "--higher --margin"),
        ("launch mine.toml", "--vary --higher"),
        ("launch mine.toml --higher x", "--vary"),
        ("calibrate train.py --runs 4", "--higher"),
    ],
)
def test_one_message_names_all_missing_flags(folder, line, flags):
    """Filled in, the line comes to the next thing that is wrong."""
    arguments = shlex.split(f"{line} --output-dir a.toml")
    first_result = esper_ab(*arguments, folder=folder)
    assert first_result.returncode == 2
    message, completed_command = first_result.stderr.split(". Complete the command: esper-ab ")
    assert all(flag in message for flag in flags.split())
    for placeholder, value in (("KEY", "lr"), ("V1,V2", "1,2"), ("VALUE", "2"), ("NAME", "score"), ("SIZE", "1")):
        completed_command = completed_command.replace(placeholder, value)
    completed_arguments = shlex.split(completed_command)
    assert completed_arguments[: len(arguments)] == arguments
    assert [word for word in completed_arguments[len(arguments) :] if word.startswith("--")] == flags.split()
    second_result = esper_ab(*completed_arguments, folder=folder)
    assert second_result.returncode == 2
    assert "missing" not in second_result.stderr
    assert "a.toml" in second_result.stderr


TRACKED = (
    "from esper_ab import create_experiment\n"
    "experiment = create_experiment('x').add_variant('a').add_variant('b', ppo__lr=2)"
    ".set_tracking(tensorboard=True).set_wandb_config(entity='lab', project='mine').build()\n"
)


@pytest.mark.parametrize(
    ("flags", "changed_fields"),
    [
        ({"wandb_mode": "offline"}, {"wandb": "offline"}),
        ({"wandb_project": "other"}, {"wandb_project": "other"}),
        ({"track": "tensorboard"}, {"wandb": "off", "wandb_entity": "", "wandb_project": ""}),
        (
            {"track": "wandb", "wandb_mode": "offline"},
            {"wandb": "offline", "wandb_entity": "", "wandb_project": "", "tensorboard": False},
        ),
    ],
)
def test_wandb_flags_override_the_tracking_settings_of_a_file(
    folder, flags: dict[str, str], changed_fields: dict[str, object]
) -> None:
    (folder / "tracked.py").write_text(TRACKED)
    declared_tracking = load_declaration(folder / "tracked.py").tracking
    assert tracking_of(LaunchFlags(**flags), declared_tracking) == msgspec.structs.replace(
        declared_tracking, **changed_fields
    )
