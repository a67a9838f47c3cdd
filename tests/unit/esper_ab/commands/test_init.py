"""The files that `esper-ab init` writes: they run as they are, and their comments say nothing that does not hold."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import msgspec
import pytest
from support.in_process import done

from esper_ab import parse_experiment
from esper_ab.commands._asking import read_what
from esper_ab.commands._exit_status import invoke
from esper_ab.commands.init import command, python_file, toml_file
from esper_ab.settings.assignments import FIELDS
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.parse import parse
from esper_ab.settings.request import read_toml, request

_DEFAULTS = parse(request())
_FAST = re.compile(r"^#(\[group\.fast\]|reward = .*|ppo\.lr = .*|\.add_variant\(.*)\n", re.MULTILINE)
_OFF = re.compile(r"^(\s*)#(?=[a-z\[.])", re.MULTILINE)  # a setting; prose has a blank after its #


def of_toml(text: str, folder: Path) -> AskedExperiment:
    path = folder / "some.toml"
    path.write_text(text)
    return parse(request(read_toml(path)))


def of_python(text: str, folder: Path) -> AskedExperiment:
    path = folder / "some.py"
    path.write_text(text)
    return parse_experiment(runpy.run_path(str(path))["experiment"])


def unnamed(experiment: AskedExperiment) -> AskedExperiment:
    return msgspec.structs.replace(experiment, name="")


def test_toml_as_it_is_asks_for_the_defaults(tmp_path: Path) -> None:
    assert of_toml(toml_file(), tmp_path) == _DEFAULTS


def test_every_comment_of_the_toml_is_a_key_with_its_default(tmp_path: Path) -> None:
    text = _OFF.sub(r"\1", _FAST.sub("", toml_file()))
    assert of_toml(text, tmp_path) == _DEFAULTS
    file = read_toml(tmp_path / "some.toml")
    assert sorted([*(one.key for one in file.common), "margin"]) == sorted(FIELDS)
    assert "# margin: The smallest difference" in text  # its default is none, which TOML cannot say
    assert "#" not in re.sub(r"(  |^)# .*", "", text, flags=re.MULTILINE)  # nothing was left out


def test_the_example_group_of_the_toml_is_a_group(tmp_path: Path) -> None:
    groups = of_toml(_OFF.sub(r"\1", toml_file()), tmp_path).groups
    assert [group.name for group in groups] == ["shaped", "simplified", "fast"]
    assert groups[-1].settings.ppo.lr == 3e-3


def test_python_as_it_is_asks_for_the_defaults(tmp_path: Path) -> None:
    assert unnamed(of_python(python_file("some"), tmp_path)) == _DEFAULTS


def test_every_comment_of_the_python_file_is_a_key_with_its_default(tmp_path: Path) -> None:
    text = _OFF.sub(r"\1", python_file("some").replace('#.add_variant("fast"', '# .add_variant("fast"'))
    assert unnamed(of_python(text, tmp_path)) == _DEFAULTS
    told = {key.replace("__", ".") for key in re.findall(r"^        ([a-z_]+)=", text, flags=re.MULTILINE)}
    assert told | {"name", "seeds"} == {*FIELDS}


def test_the_example_variant_of_the_python_file_is_a_variant(tmp_path: Path) -> None:
    text = python_file("some").replace('#.add_variant("fast"', '.add_variant("fast"')
    assert [group.name for group in of_python(text, tmp_path).groups] == ["shaped", "simplified", "fast"]


@pytest.mark.parametrize("name", ["mine.toml", "2 odd name.py"])
def test_a_file_is_not_replaced_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(command, [name], "init") == 0
    (tmp_path / name).write_text("mine")
    assert invoke(command, [name], "init") == 2
    assert "already exists; --force replaces it" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "mine"
    assert invoke(command, [name, "--force"], "init") == 0
    assert "shaped" in (tmp_path / name).read_text()


@pytest.mark.parametrize("name", ["2 odd name.toml", "2 odd name.py", "_x.toml", "plain.toml", "-.py"])
def test_the_commands_that_are_shown_can_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert invoke(command, [str(tmp_path / name)], "init") == 0
    *_, shown = capsys.readouterr().out.splitlines()
    *words, file = shlex.split(shown.removeprefix("run it: "))
    assert words == ["esper-ab", "launch"]
    assert parse(read_what({"what": file})[1]).groups


@pytest.mark.parametrize("name", ["experiment.toml", "experiment.py"])
def test_a_dry_run_of_what_is_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(toml_file() if name.endswith("toml") else python_file("experiment"))
    asked, runs, *_ = done("launch", name, "--dry-run", folder=tmp_path).splitlines()
    assert asked == "Is the held-out accuracy on digits higher with shaped than with simplified?"
    assert runs.startswith("12 runs (2 groups x 6 seeds), ")
