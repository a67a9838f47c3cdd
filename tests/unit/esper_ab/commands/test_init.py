"""The files written by `esper-ab init` run unchanged, and their comments are true."""

import re
import runpy
import shlex

import msgspec
import pytest
from support.commands.in_process import esper_ab

from esper_ab import parse_experiment
from esper_ab.commands._exit_status import invoke
from esper_ab.commands._launch_flags import LaunchFlags
from esper_ab.commands._requested_campaign import read_what
from esper_ab.commands.init import command, python_file, toml_file
from esper_ab.gate.example import EXAMPLE
from esper_ab.settings.parse import parse
from esper_ab.settings.request import request
from esper_ab.settings.schema import FIELDS
from esper_ab.settings.settings_file import read_toml

_DEFAULTS = parse(request())
_FAST = re.compile(r"^#(\[group\.fast\]|reward = .*|ppo\.lr = .*|\.add_variant\(.*)\n", re.MULTILINE)
_COMMENTED_SETTING = re.compile(r"^(\s*)#(?=[a-z\[.])", re.MULTILINE)  # a setting; prose has a blank after its #


def parsed_toml(text, folder):
    path = folder / "some.toml"
    path.write_text(text)
    return parse(request(read_toml(path)))


def parsed_python(text, folder):
    path = folder / "some.py"
    path.write_text(text)
    return msgspec.structs.replace(parse_experiment(runpy.run_path(str(path))["experiment"]), name="")


def names(experiment):
    return [group.name for group in experiment.groups]


def test_every_commented_setting_of_the_toml_file_has_its_default_value(tmp_path):
    assert parsed_toml(toml_file(), tmp_path) == _DEFAULTS
    text = _COMMENTED_SETTING.sub(r"\1", _FAST.sub("", toml_file()))
    assert parsed_toml(text, tmp_path) == _DEFAULTS
    file = read_toml(tmp_path / "some.toml")
    assert sorted([*(assignment.key for assignment in file.common), "margin"]) == sorted(FIELDS)
    assert (file.grid, file.scores) == ((), "")
    for name in ("grid", "scores", "train"):  # keys of files alone
        assert f"\n{name} = " in text
    assert "# margin: The smallest difference" in text  # its default is none, which TOML cannot say
    assert "#" not in re.sub(r"(  |^)# .*", "", text, flags=re.MULTILINE)  # nothing was left out


def test_every_commented_setting_of_the_python_file_has_its_default_value(tmp_path):
    assert parsed_python(python_file("some"), tmp_path) == _DEFAULTS
    text = _COMMENTED_SETTING.sub(r"\1", python_file("some").replace('#.add_variant("fast"', '# .add_variant("fast"'))
    assert parsed_python(text, tmp_path) == _DEFAULTS
    keys = {key.replace("__", ".") for key in re.findall(r"^        ([a-z_]+)=", text, flags=re.MULTILINE)}
    assert keys | {"name", "seeds"} == {*FIELDS}


def test_the_commented_example_of_a_generated_file_declares_a_group(tmp_path):
    of_a_toml = parsed_toml(_COMMENTED_SETTING.sub(r"\1", toml_file()), tmp_path)
    variant = python_file("some").replace('#.add_variant("fast"', '.add_variant("fast"')
    assert names(of_a_toml) == names(parsed_python(variant, tmp_path)) == ["shaped", "simplified", "fast"]
    assert of_a_toml.groups[-1].settings.ppo.lr == 3e-3


@pytest.mark.parametrize("text", [toml_file(), python_file("some")])
@pytest.mark.parametrize("key", ["train(er)?", "outcome", "outcome_better"])
def test_what_a_trainer_needs_is_described(text, key):
    above, setting = re.search(rf"((?:^ *# .*\n)*)^ *(?P<setting>#{key} ?=.*)$", text, re.MULTILINE).group(1, "setting")
    assert re.search(r"# .*(as in '|higher or lower)", above.replace("\n", "") + setting)


@pytest.mark.parametrize("name", ["mine.toml", "2 odd name.py"])
def test_init_replaces_a_file_only_with_force(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert invoke(command, [name], "init") == 0
    (tmp_path / name).write_text("mine")
    assert invoke(command, [name], "init") == 2
    assert "already exists; --force replaces it" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "mine"
    assert invoke(command, [name, "--force"], "init") == 0
    assert "shaped" in (tmp_path / name).read_text()


@pytest.mark.parametrize("name", ["2 odd name.toml", "2 odd name.py", "_x.toml", "plain.toml", "-.py"])
def test_the_command_printed_by_init_launches_the_generated_file(tmp_path, capsys, name):
    assert invoke(command, [str(tmp_path / name)], "init") == 0
    *_, last_line = capsys.readouterr().out.splitlines()
    *words, file = shlex.split(last_line.removeprefix("run it: "))
    assert words == ["esper-ab", "launch"]
    assert parse(read_what(LaunchFlags(what=file))[1]).groups


def test_a_new_gate_file_is_the_example_and_is_not_replaced(tmp_path):
    written = esper_ab("init", "--gate", folder=tmp_path)
    assert written.returncode == 0, written.stderr
    assert (tmp_path / "gate.toml").read_text(encoding="utf-8") == EXAMPLE
    assert "gate gate.toml --dry-run" in written.stdout
    again = esper_ab("init", "--gate", folder=tmp_path)
    assert again.returncode == 2
    assert "--force" in again.stderr
