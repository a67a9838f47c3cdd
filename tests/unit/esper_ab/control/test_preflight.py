"""The preflight as a process: what it waits for is named, and what is lacking for a moment is waited for."""

import os
import re
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fake_plans, left_behind, trainers

from esper_ab.contracts.children import ControllerQuestion, Device, Kernel, Questions
from esper_ab.contracts.errors import UsageError, WorkerHung
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.settings import TRAINER_PREFIX, ControllerSettings
from esper_ab.control.preflight import check_alike, examine, examine_nodes, offered, pool
from esper_ab.launchers import Launcher, Node
from esper_ab.launchers.local import LocalLauncher

REWARD = "\n\ndef reward(facts, settings):\n    return facts.best_val_acc\n"


def rewarding(folder, line):
    (folder / "mine.py").write_text(line + REWARD)
    return Questions(task="synthetic", data_dir="", user_rewards=(f"{folder}/mine.py:reward",))


def test_a_preflight_that_hangs_is_told_of_with_what_it_was_doing(tmp_path):
    """And as what it is: nothing of ours has failed, and its status is that of a worker that hangs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    questions = rewarding(tmp_path, f"import time\nopen({str(pipe)!r}, 'w').write('!')\ntime.sleep(1e6)")

    def until_it_hangs():
        assert pipe.read_text() == "!"

    with pytest.raises(WorkerHung, match=r"gave no answer within \d+ s; it was still rehearsing") as raised:
        examine(questions, until_it_hangs, limit_s=0.1)
    assert questions.user_rewards[0] in str(raised.value)
    assert raised.value.exit_code == 11


@pytest.mark.parametrize(("line", "how"), [
    ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV and printed nothing"),
    ("print('why', flush=True); import os; os._exit(7)", "ended with exit status 7; its last line: why"),
])  # fmt: skip
def test_the_death_of_the_preflight_by_a_users_code_is_told_of_that_code(tmp_path, line, how):
    """Nobody waits for what the code has left before."""
    with left_behind.nobody_waits(tmp_path) as leaves:
        questions = rewarding(tmp_path, leaves + line)
        with pytest.raises(UsageError) as raised:
            examine(questions)
    doing = f"which was rehearsing {questions.user_rewards[0]}"
    assert str(raised.value) == f"your code ended the preflight, {doing}: the process {how}"


PRINTS = """import atexit, os, sys
sys.stdout.write('half')
os.write(1, b'\\xff{')
assert not sys.stdin.read()
atexit.register(os._exit, 3)
"""
DRAWS = "import numpy as np\ndraw = np.random.default_rng().normal\n"


def test_the_answer_is_whole_whatever_a_users_code_prints_and_however_much_was_asked(tmp_path):
    """Half a line, bytes that are no text, by any descriptor; more questions than the system takes as an argument."""
    (tmp_path / "prints.py").write_text(PRINTS + REWARD)
    (tmp_path / "draws.py").write_text(DRAWS + REWARD.replace("return ", "return draw() + "))
    settings = ControllerSettings(name="wait")
    asked = tuple(ControllerQuestion(group=f"{n:0250}", settings=settings, blueprints=("norm",)) for n in range(600))
    rewards = tuple(f"{tmp_path}/{name}.py:reward" for name in ("prints", "draws"))
    questions = Questions(task="synthetic", data_dir="", user_rewards=rewards, controllers=asked)
    assert len(msgspec.json.encode(questions)) > 1 << 17
    found = examine(questions)
    assert [(one.problem, one.repeats) for one in found.user_rewards] == [("", True), ("", False)]
    assert found.controller_problems == {}


def test_nothing_waits_for_the_processes_and_threads_that_a_trainer_leaves(tmp_path):
    """Not the rehearsal, the preflight or this process, whose pipes they inherit; its code at exit runs."""
    path = Path(trainers.python_file(tmp_path))
    with left_behind.nobody_waits(tmp_path) as leaves:
        at_exit = f"import atexit\natexit.register(pathlib.Path({str(tmp_path / 'left')!r}).touch)\n"
        path.write_text(f"{leaves}{at_exit}{path.read_text()}")
        questions = Questions(
            task=f"{TRAINER_PREFIX}mine", data_dir="", user_rewards=(), trainer=trainers.question(str(path), tmp_path),
            trainer_outcome=Measure(name="outcome", label="score", better="higher"),
        )  # fmt: skip
        found = examine(questions).trainer
    assert found is not None
    assert (found.problem, found.resumption) == ("", "exactly")
    assert (tmp_path / "left").exists()


# The devices of all nodes as one pool, and which nodes are no pool: each is named, with what is wrong.


def machine(cores=2, gpus=0, **facts):
    made = fake_plans.machine(cores)
    names = [f"cuda:{i}" for i in range(gpus)]
    cards = [Device(name=name, title="H200", uuid=name, memory_bytes=1, capability="9.0") for name in names]
    return msgspec.structs.replace(made, devices=(*cards, *made.devices), **facts)


SEEN_AND_OFFERED = st.tuples(st.integers(0, 4), st.integers(1, 4), st.none() | st.integers(0, 4), st.integers(1, 4))


@given(st.lists(SEEN_AND_OFFERED, min_size=1, max_size=5))
def test_every_device_that_is_offered_has_one_place_numbered_node_after_node(sizes):
    nodes = [Node(name=f"n{i}", cores=cores, gpus=gpus) for i, (*_, gpus, cores) in enumerate(sizes)]
    there = [machine(cores, gpus) for gpus, cores, *_ in sizes]
    found = pool(nodes, [offered(node, one) for node, one in zip(nodes, there, strict=True)])
    assert len({device.name for device in found}) == len(found)
    gpus = [seen if own is None else min(seen, own) for seen, _, own, _ in sizes]
    for kind, counts in (("cuda", gpus), ("cpu", [min(seen, own) for _, seen, _, own in sizes])):
        of_kind = [device for device in found if device.name.startswith(kind)]
        assert [device.name for device in of_kind] == [f"{kind}:{i}" for i in range(sum(counts))]
        assert [device.node for device in of_kind] == [f"n{i}" for i, count in enumerate(counts) for _ in range(count)]


@pytest.mark.parametrize(("other", "said"), [
    (machine(torch_version="2.7"), "torch is 2.7 on node n2 but none on n1"),
    (machine(sources="b"), "the state of esper_ab's code is b on node n2 but none on n1"),
    (machine(kernels=(Kernel(name="native-avx2", build="g"),)), "the native kernel is native-avx2 g on node n2"),
    (machine(gpus=1), r"node n2 has H200 \(9.0\), n1 has no GPU: an experiment trains on one kind of GPU"),
])  # fmt: skip
def test_a_node_that_would_compute_otherwise_is_named(other, said):
    with pytest.raises(UsageError, match=said):
        check_alike({"n1": machine(), "n2": other})
    check_alike({"n1": other, "n2": other, "n3": other})


def test_without_nodes_the_machine_is_the_pool(tmp_path):
    alone = machine()
    questions = Questions(task="digits", data_dir="", user_rewards=())
    assert examine_nodes(alone, questions, LocalLauncher(), tmp_path) is alone
    assert list(tmp_path.iterdir()) == []


class Answering(AbstractContextManager):
    """An errand of a stand-in node, which has run."""

    returncode = 0

    def __init__(self, there):
        self._there = there

    def communicate(self, *, timeout):
        return msgspec.json.encode(self._there), b""

    def __exit__(self, *_): ...


class OfNodes(Launcher):
    """A launcher of stand-in nodes, which see the files of this machine but for those of `blind`."""

    name = "nodes"
    nodes = tuple(Node(name=f"n{i}", cores=2) for i in (1, 2, 3))

    def __init__(self, blind=""):
        super().__init__()
        self._blind, self.asked = blind, {}

    def begin(self, node, module, line):
        self.asked[node] = asked = msgspec.json.decode(line, type=Questions)
        seen = node != self._blind and Path(asked.shared_file).is_file()
        return Answering(machine(sees_shared_file=seen))


@pytest.mark.parametrize("made", [True, False])
def test_a_node_that_does_not_see_the_folder_is_named_with_it(tmp_path, made):
    """Where the experiment's directory is not made yet, the nearest folder above it that is there has to be seen."""
    folder = tmp_path / "experiments" / "mine"
    if made:
        folder.mkdir(parents=True)
    seen = folder if made else tmp_path
    questions = Questions(task="digits", data_dir="", user_rewards=("own.py:reward",))
    line = f"node n2: it does not see {seen}: all nodes must see this folder at the same path"
    with pytest.raises(UsageError, match=f"^{re.escape(line)}$"):
        examine_nodes(machine(), questions, OfNodes(blind="n2"), folder)
    all_see = OfNodes()
    pooled = examine_nodes(machine(), questions, all_see, folder)
    assert [device.node for device in pooled.devices] == ["n1", "n1", "n2", "n2", "n3", "n3"]
    assert {asked.user_rewards for asked in all_see.asked.values()} == {questions.user_rewards}
    assert list(seen.iterdir()) == [], "nothing is left of the question"
