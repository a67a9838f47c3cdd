"""docs/data.md: its Python and its commands run unchanged, and its tables list the existing columns."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from support.journals.ready_journals import write
from support.journals.synthetic import Shape, Synthetic

from esper_ab import load_experiment
from esper_ab.commands._exit_status import invoke
from esper_ab.commands.cli import group
from esper_ab.contracts.rng import run_path
from esper_ab.journal.events import RunEvaluated
from workers.ppo.agent import AgentSpec, PPOAgent
from workers.run import policy_file

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def agent_of(spec):
    """An untrained agent; its sizes do not match the task, as it makes no decision here."""
    settings = spec.settings
    return PPOAgent(
        AgentSpec(
            observation_width=5,
            head_names=("op",),
            head_sizes=(3,),
            observation_std_floor=0.1,
            policy=settings.policy,
            ppo=settings.ppo,
            planned_episodes=1,
            rng=run_path(spec.rng_seed, spec.ref.replicate),
        ),
        spec.arithmetic,
    )


def written(folder, synthetic_experiment):
    """A finished experiment directory with its policies."""
    specs = {spec.ref.name: spec for block in synthetic_experiment.plan().blocks for spec in block.runs}
    folder.mkdir(parents=True)
    shas = {name: policy_file.save(folder, spec, agent_of(spec)) for name, spec in specs.items()}
    return write(
        folder,
        [
            RunEvaluated(record=msgspec.structs.replace(event.record, policy_sha256=shas[event.record.run.name]))
            if isinstance(event, RunEvaluated)
            else event
            for event in synthetic_experiment.events()
        ],
    )


@pytest.fixture
def demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    synthetic_experiment = Synthetic()
    written(Path("experiments/demo"), synthetic_experiment)
    groups = {"base": Shape(accuracy=74.0, stream="shaped"), "wait": Shape(accuracy=33.0, controller="wait")}
    write(Path("experiments/other"), replace(synthetic_experiment, groups=groups).events())
    return load_experiment("experiments/demo")


def test_the_python_blocks_print_the_output_in_their_comments(demo, capsys):
    names = {}
    for block in blocks("python"):
        exec(compile(block, "docs/data.md", "exec"), names)
    output = capsys.readouterr().out
    promised_texts = re.findall(r"print\([^\n]*\) +# (.*)", "\n".join(blocks("python")))
    assert len(promised_texts) == 7
    for promised_text in promised_texts:
        if not promised_text.startswith("with "):
            start = promised_text.partition("...")[0].rstrip()
            plain_text = (
                output if "'" in start or "<" in start or start.startswith("no group") else re.sub(r"[()']", "", output)
            )
            assert start in plain_text, promised_text
    assert Path("pairs.svg").read_text().startswith("<?xml")
    assert names["policy"].spec.ref.name == "shaped/0"


def test_the_commands_of_the_data_page_can_be_run(demo, capsys):
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(lines) == 3
    for line in lines:
        assert invoke(group, shlex.split(line)[1:], "esper-ab") == 0, capsys.readouterr().err
    assert {path.name for path in Path("tables").iterdir()} == {"episodes.parquet", "pairs.parquet"}
    assert len(list(Path("experiments/demo/export").iterdir())) == 9
    output = " ".join(capsys.readouterr().out.split())
    assert "experiments/other compared base and wait by its own plan" in output


@pytest.mark.parametrize("table", ["comparisons", "pairs"])
def test_the_page_documents_every_column(demo, table):
    section = re.search(rf"^#### {table}\n(.*?)(?=^#|\Z)", PAGE, flags=re.DOTALL | re.MULTILINE).group(1)
    cells = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(cells)) == demo.frame(table).columns


def test_the_page_documents_every_method(demo):
    documented_methods = set(re.findall(r"^\| `(\w+)\(", PAGE, flags=re.MULTILINE))
    methods = {name for name in dir(demo) if not name.startswith("_") and callable(getattr(demo, name))}
    assert documented_methods == methods - {"plot", "policy", "comparison"}
