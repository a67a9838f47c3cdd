"""A settings file can say what the flags of `launch` say about the question, or its error says how."""

import pytest

from esper_ab.commands._launch_flags import LaunchFlags
from esper_ab.contracts.errors import UsageError
from esper_ab.settings.flags_alone import FLAGS_ALONE
from esper_ab.settings.launcher import AskedLauncher
from esper_ab.settings.parts import parse_parts
from esper_ab.settings.request import read_request
from esper_ab.settings.schema import FIELDS
from esper_ab.settings.settings_file import read_toml

COMMAND = "train = 'python train.py --seed {seed} --lr {lr} --out {out}'\n"
GRID = "grid = ['ppo.lr=1e-3,1e-4', 'ppo.epochs=2,4']\n"
TABLES = {"what", "group", "groups", "grid", "scores"}  # `what` is the file, or `train` in it


def requested(tmp_path, text, **flags):
    path = tmp_path / "a.toml"
    path.write_text(text)
    return read_request(flags, read_toml(path))


def test_every_flag_of_launch_has_a_key_or_a_sentence_on_what_to_write():
    flags = set(LaunchFlags.__struct_fields__)
    with_key = {field.flag.rpartition(".")[2] for field in FIELDS.values()}
    assert flags - with_key - set(AskedLauncher.__struct_fields__) - TABLES == FLAGS_ALONE


@pytest.mark.parametrize("flag", sorted(FLAGS_ALONE))
def test_a_flag_without_a_key_is_refused_with_what_to_write(tmp_path, flag):
    with pytest.raises(UsageError, match=rf"a.toml {flag}: unknown key '{flag}'; .*(--|write|a file has|seeds = N)"):
        requested(tmp_path, f"{flag} = 1\n")


def test_a_grid_and_scores_of_a_file_are_those_of_the_flags(tmp_path):
    of_flags = read_request({"grid": ("ppo.lr=1e-3,1e-4", "ppo.epochs=2,4"), "scores": "0..100"})
    of_file = requested(tmp_path, GRID + "scores = '0..100'\n")
    assert parse_parts(of_file) == parse_parts(of_flags)
    assert of_file.scores == of_flags.scores
    other = requested(tmp_path, GRID + "scores = '0..100'\n", grid=("ppo.lr=1,2",), scores="0..1")
    assert ([part.name for part in parse_parts(other)], other.scores) == (["ppo.lr=1", "ppo.lr=2"], "0..1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid = 'ppo.lr=1,2'", "a.toml: grid must be a list of texts, as in"),
        ("grid = ['ppo.lr=1']", "a.toml grid ppo.lr=1: give at least two different values"),
        ("grid = ['alpha=0.1,0.2']", "a.toml grid alpha=0.1,0.2: alpha must be the same in every cell"),
        ("scores = [0, 1]", "a.toml: scores must be a text, as in"),
        ("seeds = 'auto'", "expected int, not 'auto'; for as many as are needed, set open_ended = true"),
    ],
)
def test_what_a_file_says_wrongly_is_refused_with_its_key(tmp_path, text, message):
    with pytest.raises(UsageError, match=message):
        parse_parts(requested(tmp_path, text))


@pytest.mark.parametrize("settings", ["trainer.lr = 0.1\n", "[trainer]\nlr = 0.1\n"])
def test_a_file_names_a_trainer_beside_the_settings_that_all_groups_have(tmp_path, settings):
    groups = "[group.a]\ntrainer.more = 1\n[group.b]\ntrainer.more = 2\n"
    question = "outcome = 'score'\noutcome_better = 'higher'\nmargin = 1.0\n"
    (part,) = parse_parts(
        requested(tmp_path, COMMAND.replace("--lr", "--more {more} --lr") + question + settings + groups)
    )
    assert part.asked.trainer.startswith("python train.py")
    assert [group.settings.trainer for group in part.asked.groups] == [{"lr": 0.1, "more": 1}, {"lr": 0.1, "more": 2}]
    with pytest.raises(UsageError, match=r"TOML allows no `trainer = …` beside settings of the trainer.*`train = …`"):
        requested(tmp_path, COMMAND.replace("train =", "trainer =", 1) + question + settings)
    with pytest.raises(UsageError, match="trainer is set twice"):
        requested(tmp_path, COMMAND + COMMAND.replace("train =", "trainer =", 1))
