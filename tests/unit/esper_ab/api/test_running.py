"""Errors from Python speak of keys and arguments, and from `esper-ab run` of the flags that it has."""

from __future__ import annotations

import re

import pytest

from esper_ab import create_experiment, run_ab_test
from esper_ab.api.asked import declaration
from esper_ab.api.in_python import said_in_python
from esper_ab.api.running import Runner, prepared
from esper_ab.commands._options import flag_help
from esper_ab.commands.run import _FLAGS
from esper_ab.contracts.errors import UsageError

START = create_experiment("x").add_variant("shaped").add_variant("wait").set_base_config(task="synthetic")


@pytest.mark.parametrize(("typed", "said"), [
    ("--devices-per-run 3 with --n-envs 2: at most 2", "devices_per_run=3 with n_envs=2: at most 2"),
    ("--control zz: no such group", "control=zz: no such group"),
    ("--placement alternate takes turns; --sync independent", "placement=alternate takes turns; sync=independent"),
    ("--untested leaves no two groups", "untested leaves no two groups"),
    ("--unpaired is to keep them apart", "unpaired is to keep them apart"),
    ("--data-dir names another folder", "data_dir names another folder"),
    ("--slots late early: as in --slots early late", "slots late early: as in slots early late"),
    ("choose another with --name or --out", "choose another with name or output_dir"),
    ("--max-parallel 1, but", "max_parallel_runs=1, but"),
    ("use --set n_envs=… for all", "use n_envs=… for all"),
    ("/tmp/a--b/--c: no file", "/tmp/a--b/--c: no file"),
])  # fmt: skip
def test_a_flag_becomes_what_python_calls_it(typed, said):
    assert said_in_python(typed) == said


@pytest.mark.parametrize("key", flag_help())
def test_no_flag_of_launch_is_left_over(key):
    assert "--" not in said_in_python(f"--{key.replace('_', '-')}: not so, say --{key.replace('_', '-')} or nothing")


def refusal(how):
    with pytest.raises(UsageError) as caught:
        how()
    return str(caught.value)


def test_a_bad_name_is_that_of_the_argument(tmp_path):
    assert refusal(lambda: run_ab_test(START.build(), tmp_path, name="a b")).startswith("name 'a b': a folder's name")
    assert refusal(lambda: run_ab_test(START.build(), tmp_path, name=3)) == "name 3: text"
    runner = Runner(output_dir=tmp_path, name="a b", words=_FLAGS)
    assert refusal(lambda: prepared(declaration(START.build(), tmp_path), runner)).startswith("--name 'a b': a folder")


@pytest.mark.parametrize("base", [{"exam": True}, {"nonsense": 1}])
def test_a_builder_is_told_nothing_of_the_command_line(base):
    assert not re.search(r"--|launch", refusal(START.set_base_config(base).build))
