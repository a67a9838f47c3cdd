"""No name in a received file makes a command import a module or open a file outside the received folder.

Each string of a policy file and of a journal's plan is replaced by names that would do so if used unchecked.
"""

import sys
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from support.commands.evaluation_child import evaluated
from support.journals import ready_journals, synthetic
from support.worlds.gym_world import gym_spec
from support.worlds.tensor_world import make_session

from esper_ab.commands import cli
from esper_ab.commands._exit_status import invoke
from esper_ab.contracts.trainer import TrainerOrder
from esper_ab.contracts.worker_order import RewardCode, RunSpec
from esper_ab.journal.events import AnyEvent, ExperimentStarted
from esper_ab.journal.fold import Inconsistent, fold
from workers.commands.answering import REFUSED
from workers.run import policy_file
from workers.storage import durable, state_bytes

MODULE = "a_trap_for_imports"
_caught: list[str] | None = None


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if _caught is None or event not in ("import", "open") or MODULE not in str(args[0]):
        return
    if event == "import" or "received" not in Path(args[0]).resolve().parts:
        _caught.append(f"{event} {args[0]}")


sys.addaudithook(_watch)  # for the rest of the process; it looks only while something is caught


@pytest.fixture
def caught() -> Iterator[list[str]]:
    """Record imports, and files opened outside the received folder, whose name contains MODULE."""
    global _caught
    _caught = []
    yield _caught
    _caught = None


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Names of an importable module in the working directory, of its functions, and of files outside."""
    outside_folder = tmp_path / "outside"
    (outside_folder / MODULE).mkdir(parents=True)
    for path in (outside_folder / f"{MODULE}.py", outside_folder / MODULE / "env.py"):
        path.write_text("def make(*_): ...\n")
    (tmp_path / "received").mkdir()
    monkeypatch.chdir(outside_folder)
    monkeypatch.syspath_prepend(str(outside_folder))
    relative_name = f"../outside/{MODULE}"
    return (
        MODULE,
        f"{MODULE}:make",
        f"gym:{MODULE}:X-v0",
        f"gym:{MODULE}:CartPole-v1",
        f"{outside_folder}/{MODULE}.py:make",
        f"{outside_folder}/{MODULE}",
        relative_name,
        f"{relative_name}/env.py:make",
        f"{relative_name}/env.py",
    )


def _places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all strings and of empty lists; of a list only the first item is visited."""
    if isinstance(tree, str):
        yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree[:1]) if isinstance(tree, list | tuple) else ()
    for key, item in items:
        yield from _places(item, (*path, key))
    if isinstance(tree, list | tuple) and not tree:
        yield (*path, 0)


def _with(tree: Any, path: tuple[Any, ...], name: str) -> Any:
    if not path:
        return name
    if isinstance(tree, dict):
        return {**tree, path[0]: _with(tree[path[0]], path[1:], name)}
    return [_with(tree[0], path[1:], name), *tree[1:]] if tree else [name]


def _fits(tree: Any, kind: type) -> bool:
    try:
        msgspec.convert(tree, kind)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    "make_order",
    [
        pytest.param(lambda: make_session(controller="wait", steps=1, n_envs=1).spec, id="growth"),
        pytest.param(lambda: gym_spec("gym:CartPole-v1", controller="random", n_envs=1, steps=1), id="gymnasium"),
    ],
)
def test_evaluate_neither_imports_nor_opens_names_in_a_policy(tmp_path, names, caught, make_order):
    tree = msgspec.to_builtins(make_order())

    def is_evaluated(paths: Sequence[tuple[Any, ...]], name: str) -> bool:
        spec = reduce(lambda changed_tree, path: _with(changed_tree, path, name), paths, tree)
        state = {"format": policy_file.FORMAT, "spec": spec, "agent": None}
        durable.write(tmp_path / "received", "0.pt", state_bytes.to_bytes(state))
        try:
            return bool(evaluated(tmp_path / "received" / "0.pt").rows)
        except REFUSED:
            return False
        finally:
            assert caught == [], (paths, name)

    unused_paths: list[tuple[Any, ...]] = []  # places that an evaluation does not use, filled all at once
    for name in names:
        used_paths = [
            path for path in _places(tree) if path not in unused_paths and _fits(_with(tree, path, name), RunSpec)
        ]
        assert used_paths
        is_evaluated([path for path in unused_paths if _fits(_with(tree, path, name), RunSpec)], name)
        unused_paths += [path for path in used_paths if is_evaluated([path], name)]


def test_evaluate_imports_a_module_allowed_by_the_user(tmp_path, names, caught):
    spec = gym_spec(f"gym:{MODULE}:CartPole-v1", controller="random", n_envs=1, steps=1)
    policy_file.save(tmp_path, spec, None)
    policy = str(tmp_path / spec.policy_file)
    with pytest.raises(ValueError, match=f"^{policy}: its task 'gym:{MODULE}:CartPole-v1' imports '{MODULE}'"):
        evaluated(policy, importable_folders=("another",))
    assert caught == []
    evaluated(policy, importable_folders=(MODULE,))
    assert caught
    del sys.modules[MODULE]


def test_evaluate_does_not_import_from_the_working_directory(tmp_path, names, monkeypatch, capfd):
    """A received folder may have been unpacked there."""
    spec = gym_spec(f"gym:{MODULE}:CartPole-v1", controller="random", n_envs=1, steps=1)
    policy_file.save(tmp_path, spec, None)
    assert Path(f"{MODULE}.py").is_file()
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert invoke(cli.group, ["evaluate", str(tmp_path / spec.policy_file), "--import", MODULE], "esper-ab") == 2
    assert f"importing '{MODULE}' failed: ModuleNotFoundError" in capfd.readouterr().err


READERS = (
    ("status",),
    ("status", "--json"),
    ("logs",),
    ("report", "--format", "md"),
    ("query", "SELECT * FROM runs"),
    ("tidy", "--check"),
    ("list",),
    ("export", "--out", "exported"),
    ("stop",),
    ("status", "-f"),
)


def _holds(events: Sequence[AnyEvent], tree: Any) -> list[AnyEvent] | None:
    """Return the journal with `tree` as its first event, or None if it is refused."""
    try:
        changed_events = [msgspec.convert(tree, ExperimentStarted), *events[1:]]
        fold(changed_events)
    except (msgspec.ValidationError, Inconsistent):
        return None
    return changed_events


@pytest.mark.parametrize("number", range(0, 9, 3))
def test_reading_commands_neither_import_nor_open_names_in_a_journal(tmp_path, names, caught, number):
    """All strings that the types and the fold accept are replaced at once."""
    name = names[number]
    events = synthetic.Synthetic(replicates=2, episodes=2).events()
    trainer_order = TrainerOrder(
        reference="own.py",
        directory="d",
        outcome="o",
        folder="f",
        files=("own.py",),
        sha256="s",
        metrics={},
        out="o",
        resumes=True,
    )
    tree = msgspec.to_builtins(events[0])
    filled = 0
    code = RewardCode(reference="own.py:f", folder="f", file="own.py", sha256="")
    for orders in tree["plan"]["blocks"][0]["runs"]:
        orders |= {"reward_code": [msgspec.to_builtins(code)], "trainer": msgspec.to_builtins(trainer_order)}
    for path in _places(tree):
        changed_tree = _with(tree, path, name)
        if not {"lanes", "device"} & set(path) and _holds(events, changed_tree):  # which have to fit each other
            tree = changed_tree
            filled = filled + 1
    assert filled > 20
    folder = ready_journals.write(tmp_path / "received", _holds(events, tree))
    for command, *arguments in READERS:
        result = CliRunner().invoke(cli.group, [command, str(folder), *arguments])
        assert caught == [], (command, result.output)
        assert isinstance(result.exception, SystemExit | None), (command, result.exception)
