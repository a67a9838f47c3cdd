"""Invalid inputs from the tables in tests/golden/refusals, with their error messages.

A table NAME.toml has an input per key, which says in a sentence what is wrong:

    ["a group that does not exist"]
    run = "launch --groups nobody"        # words of a command line; or a list of words
    python = "..."                        # in its place: statements, of which the last raises the error
    files = {"a.toml" = "..."}            # in the working directory; a name that ends with / is a folder
    experiments = {"done" = "finished"}   # directories of the kinds in EXPERIMENTS, OVER_TASKS, or "joint"
    made = {"c.json" = "calibration"}     # files of the kinds in MADE
    environment = {"NAME" = "value"}
    machine = {gpus = 1}                  # what the preflight finds, see `_preflight`
    children = true                       # the command may start processes

The table [files] of NAME.toml is for all its inputs. FOLDER stands for the working directory in inputs and texts.
NAME.json has the message for each input: exit status and standard error of a command, or the Python error.

    PYTHONPATH=tests .venv/bin/python -m support.goldens.refusals

rewrites the messages; read the diff before you commit it. Names of tables write only these (`csv launch`).
With `--sites` it prints which places in the code no input reaches.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from esper_ab.analysis.calibration import calibration_of
from esper_ab.contracts.errors import EsperError
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.control import preflight
from esper_ab.journal.events import RunEvaluated
from esper_ab.journal.fold import fold
from esper_ab.launchers.local import LocalLauncher
from esper_ab.readers.external_plan import make_external_plan, save_plan, write_plan
from esper_ab.readers.joint_directory import Joint, JointPart, write_joint
from esper_ab.readers.scales import scales_of
from esper_ab.verdict.analysis_plan import Rule
from support.commands.in_process import Answered, esper_ab
from support.goldens.refusal_sites import Site, reached, sites
from support.journals import over_tasks, ready_journals, synthetic
from support.plans import requests
from support.rewards.audited_rewards import make_reward_audit, make_scored

TABLES = Path(__file__).parents[2] / "golden" / "refusals"
UNREACHED = TABLES / "unreached.toml"  # site -> why no input reaches it
EXPERIMENTS: dict[str, Callable[[], list[Any]]] = {
    "finished": ready_journals.planted_effect,
    "three groups": ready_journals.three_groups,
    "failed": ready_journals.failed_run,
    "one seed": ready_journals.one_replicate,
    "stopped": lambda: _stopped(),
    "stopped, without its script": lambda: _stopped_command(),
    "no event": lambda: [],
    "one group": lambda: synthetic.Synthetic(groups={"shaped": synthetic.Shape()}).events(),
    "one group with another rng seed": lambda: synthetic.Synthetic(
        groups={"shaped": synthetic.Shape()}, rng_seed=12
    ).events(),
    "another rng seed": lambda: synthetic.Synthetic(rng_seed=12).events(),
    "longer with another rng seed": lambda: synthetic.Synthetic(rng_seed=12, episodes=9).events(),
}
OVER_TASKS: dict[str, Callable[[], dict[str, synthetic.Synthetic]]] = {
    "over two tasks": lambda: over_tasks.parts_of(11),
    "over two other tasks": lambda: over_tasks.parts_of(12, tasks=("digits", "blobs")),
}


def _calibration() -> bytes:
    same_groups = {"a": synthetic.Shape(stream="a"), "b": synthetic.Shape(stream="b")}
    history = fold(synthetic.Synthetic(groups=same_groups, replicates=6).events())
    return msgspec.json.encode(calibration_of(history, 10, deterministic=True, margin_named=True))


def _reward_audit() -> bytes:
    outcomes = [1.0, 2.0, 3.0]
    audit = make_reward_audit(outcomes, [make_scored("sparse", outcomes)])
    question = msgspec.structs.replace(audit.question, task="digits", schedules=2)
    return msgspec.json.encode(msgspec.structs.replace(audit, question=question))


def _plan(*tasks: str, cells: tuple[str, ...] = ()) -> bytes:
    scales = scales_of(tasks or ("",), 2.0)
    seeds = tuple(map(str, range(8)))
    return write_plan(
        make_external_plan(("new", "old"), seeds, scales, Rule(), cells=cells, choosing=2 if cells else 0)
    )


def _stopped() -> list[Any]:
    events = ready_journals.planted_effect()
    return events[: next(i for i, event in enumerate(events) if isinstance(event, RunEvaluated))]


def _stopped_command() -> list[Any]:
    first, *others = _stopped()
    experiment = msgspec.structs.replace(first.plan.experiment, trainer="python train.py --seed {seed} --out {out}")
    facts = TrainerFacts(root="/nowhere", files=("train.py",), sha256="0" * 64)
    plan = msgspec.structs.replace(first.plan, experiment=experiment, trainer=facts)
    return [msgspec.structs.replace(first, plan=plan), *others]


def _joint(folder: Path) -> Path:
    """Write a joint experiment of digits and mixture in which no part has begun."""
    tasks = ("digits", "mixture")
    plan = make_external_plan(("shaped", "simplified"), tuple("012345"), scales_of(tasks, 2.0), Rule())
    parts = tuple(JointPart(name=task, folder=task, digest="0" * 64) for task in tasks)
    folder.mkdir(parents=True)
    save_plan(plan, folder / "plan.json")
    write_joint(folder, Joint(parts=parts, scores={}), {task: f'task = "{task}"\n' for task in tasks})
    return folder


MADE: dict[str, Callable[[], bytes]] = {
    "calibration": cache(_calibration),
    "reward_audit": cache(_reward_audit),
    "plan": _plan,
    "plan of tasks": lambda: _plan("digits", "mixture"),
    "plan with cells": lambda: _plan(cells=("slow", "fast")),
}
_FOLDER = "FOLDER"
_FREE = re.compile(r"\d+ MiB free")
# A checkout's commit and sources.
_CODE = re.compile(r"(?:commit [0-9a-f]{12}(?: with changes)? \()?sources [0-9a-f]{16}\)?")
_LONG_NUMBER = re.compile(r"(\d)\1{99,}")  # is shortened in texts
_ENVIRONMENT = {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}
_UNSET_VARIABLES = ("WANDB_MODE", "WANDB_API_KEY", "MLFLOW_TRACKING_URI", "RAY_ADDRESS", "SLURM_JOB_ID")


@dataclass(frozen=True, kw_only=True, eq=False)
class Refusal:
    """One input; the fields are the keys of a table."""

    table: str
    name: str
    run: str | list[str] = ""
    python: str = ""
    files: dict[str, str] = field(default_factory=dict)
    experiments: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    children: bool = False

    @property
    def id(self) -> str:
        return f"{self.table}: {self.name}"


@cache
def refusals() -> tuple[Refusal, ...]:
    """Return all inputs of all tables."""
    listed_refusals: list[Refusal] = []
    for path in sorted(TABLES.glob("*.toml")):
        if path == UNREACHED:
            continue
        table = tomllib.loads(path.read_text())
        shared_files = table.pop("files", {})
        for name, keys in table.items():
            keys["files"] = shared_files | keys.get("files", {})
            listed_refusals.append(Refusal(table=path.stem, name=name, **keys))
    return tuple(listed_refusals)


@cache
def expected(table: str) -> dict[str, str]:
    """Return the stored message for each input of a table."""
    path = TABLES / f"{table}.json"
    texts: dict[str, str] = json.loads(path.read_text()) if path.is_file() else {}
    return texts


def refusal_text(refusal: Refusal) -> str:
    """Run the input in a temporary folder; return exit status and message."""
    with tempfile.TemporaryDirectory(prefix="refusal-") as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name).resolve()
        for variable in _UNSET_VARIABLES:
            patch.delenv(variable, raising=False)
        for variable, value in (_ENVIRONMENT | refusal.environment).items():
            patch.setenv(variable, value.replace(_FOLDER, str(folder)))
        _lay_out(refusal, folder)
        patch.setattr(preflight, "begin_here", lambda *_: _preflight_answer(refusal.machine, folder))
        patch.setattr(LocalLauncher, "imports_torch_once", False)  # so that `begin_here` begins it
        if not refusal.children:
            patch.setattr(subprocess, "Popen", _NoChild)
        text = _python_message(refusal.python, folder) if refusal.python else _command_message(refusal.run, folder)
        text = _FREE.sub("… MiB free", text.replace(str(folder), _FOLDER))
        text = _CODE.sub("sources …", text)
        return _LONG_NUMBER.sub(r"\1…\1", text)


def _lay_out(refusal: Refusal, folder: Path) -> None:
    for name, kind in refusal.experiments.items():
        shutil.copytree(_experiment(kind), folder / name)
    for name, kind in refusal.made.items():
        (folder / name).write_bytes(MADE[kind]())
    for name, content in refusal.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(content.replace(_FOLDER, str(folder)), encoding="utf-8")
            path.chmod(0o700 if content.startswith("#!") else 0o600)


@cache
def _experiment(kind: str) -> Path:
    """Return an experiment directory of this kind; the callers copy it."""
    folder = Path(_experiments_folder().name) / kind
    if kind in OVER_TASKS:
        return over_tasks.write_over_tasks(folder, OVER_TASKS[kind]())
    return _joint(folder) if kind == "joint" else ready_journals.write(folder, EXPERIMENTS[kind]())


@cache
def _experiments_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="refusals-")


def _command_message(run: str | list[str], folder: Path) -> str:
    words = shlex.split(run) if isinstance(run, str) else run
    process = esper_ab(*(word.replace(_FOLDER, str(folder)) for word in words), folder=folder)
    return f"{process.returncode} {process.stderr.strip()}"


def _python_message(source: str, folder: Path) -> str:
    modules = set(sys.modules)
    try:
        with contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(source.replace(_FOLDER, str(folder)), "<input>", "exec"), {"__name__": "input"})
    except EsperError as error:
        return f"{type(error).__name__} {error}"
    finally:
        for name in set(sys.modules) - modules:
            if name.startswith("esper_ab_run."):
                del sys.modules[name]
    return "not refused"


class _NoChild(subprocess.Popen[bytes]):
    """A Popen that starts no process: git is missing, matplotlib's fc-list runs, and any other command is an error."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        self.returncode = 0  # for __del__
        if command[0] == "git":
            raise FileNotFoundError(errno.ENOENT, "there is none here", "git")
        if command[0] != "fc-list":
            raise AssertionError(f"a refusal starts no process: {command}")
        super().__init__(command, **options)


def _preflight_answer(description: dict[str, Any], folder: Path) -> Answered:
    """Return a preflight child that has answered with a fictitious machine.

    `answer` and `complaint` of the input's machine, if it has them, replace the output of the child.
    """
    if "answer" in description:
        return Answered(
            description["answer"].encode(), description.get("complaint", "").replace(_FOLDER, str(folder)).encode()
        )
    text = json.dumps(_machine(description)).replace(_FOLDER, str(folder))
    return Answered(msgspec.json.encode(msgspec.json.decode(text.encode(), type=Machine)))


def _machine(description: dict[str, Any]) -> Any:
    """Return a fictitious machine with `cores`, `gpus`, and changed `task` and `device`; other keys are its fields."""
    fields = dict(description)
    task = fields.pop("task", {})
    machine: dict[str, Any] = msgspec.to_builtins(requests.machine(fields.pop("cores", 2), fields.pop("gpus", 0)))
    device = fields.pop("device", {})
    machine["tasks"] = [{**facts, **task} for facts in machine["tasks"]]
    machine["devices"] = [{**facts, **device} for facts in machine["devices"]]
    return machine | fields


@cache
def text_and_sites(refusal: Refusal) -> tuple[str, set[Site]]:
    """Run the input once; return its message and the sites that raised it."""
    with reached() as sites_reached:
        return refusal_text(refusal), sites_reached


def listed() -> dict[str, str]:
    """Return the places that no input reaches, by name, with the reason."""
    reasons: dict[str, str] = tomllib.loads(UNREACHED.read_text())
    return reasons


def coverage() -> tuple[float, list[Site]]:
    """Return the share of the sites in the code that the inputs reach, and a list of the other sites."""
    sites_reached = set().union(*(text_and_sites(refusal)[1] for refusal in refusals()))
    open_to_inputs = [site for file_sites in sites().values() for site in file_sites if site.name not in listed()]
    missed_sites = [site for site in open_to_inputs if site not in sites_reached]
    return 1 - len(missed_sites) / len(open_to_inputs), missed_sites


def _write_texts(tables: Sequence[str]) -> Iterator[str]:
    """Rewrite the messages of the named tables, or of all, and yield the inputs that are not refused."""
    texts: dict[str, dict[str, str]] = {}
    for refusal in refusals():
        if tables and refusal.table not in tables:
            continue
        try:
            text = refusal_text(refusal)
        except Exception as error:  # noqa: BLE001  a mistake of ours, or of the input
            text = f"not refused: {error!r}"
        texts.setdefault(refusal.table, {})[refusal.name] = text
        if text.startswith("not refused") or text.startswith("0 "):
            yield refusal.id
    for table, by_name in texts.items():
        (TABLES / f"{table}.json").write_text(json.dumps(by_name, indent=0, ensure_ascii=False) + "\n")


def main() -> None:
    """Rewrite the stored messages, or with `--sites` show which sites no input reaches."""
    with tempfile.TemporaryDirectory() as cache_folder:
        os.environ["XDG_CACHE_HOME"] = cache_folder
        # Messages name `esper-ab` without its folder if it is on the path.
        os.environ["PATH"] = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
        if "--sites" in sys.argv:
            share, missed_sites = coverage()
            for site in missed_sites:
                click.echo(f"{site.file}:{site.first}  {site.name}")
            click.echo(f"{share:.1%} of the places that an input can reach; {len(listed())} others are listed")
        else:
            for name in _write_texts(sys.argv[1:]):
                click.echo(f"not refused: {name}")


if __name__ == "__main__":
    main()
