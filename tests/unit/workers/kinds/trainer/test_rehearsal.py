import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from support.workers import trainers

from esper_ab.contracts.measures import Measure
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import Arithmetic
from esper_ab.contracts.trainer import TrainerFacts, TrainerQuestion
from workers.kinds.trainer import python_rehearsal, rehearsal, rehearsal_setup, running
from workers.kinds.trainer.idling import IDLE_LIMITS, IdleLimits
from workers.kinds.trainer.kind import open_session
from workers.kinds.trainer.named_files import named_files
from workers.kinds.trainer.python_rehearsal import behaviour
from workers.kinds.trainer.trial import Trial, Tried, attempt

pytestmark = pytest.mark.usefixtures("warm_children")


MEASURE = Measure(name="outcome", label="score", better="higher")


def silent(message: str) -> None: ...


def rehearse(question: TrainerQuestion, measure: Measure = MEASURE, limits: IdleLimits = IDLE_LIMITS) -> TrainerFacts:
    return rehearsal.rehearse(question, measure, silent, limits)


def rehearsed_python(tmp_path: Path, fault: str = "") -> Any:
    groups = {"a": {"lr": "1", "fault": fault}, "b": {}}
    return rehearse(trainers.question(trainers.python_file(tmp_path), tmp_path, groups=groups))


def rehearsed_command(tmp_path: Path, lr: str = "1", **changes: Any) -> Any:
    groups = {"a": {"lr": lr}, "b": {"lr": "2"}}
    return rehearse(trainers.question(trainers.command(tmp_path), tmp_path, groups=groups, **changes))


def attempted(tmp_path: Path, fault: str, **changes: Any) -> Tried:
    defaults = {
        "question": trainers.question(trainers.python_file(tmp_path), tmp_path),
        "settings": {"fault": fault},
        "rng": RngPath(0),
        "folder": str(tmp_path),
        "device": "cpu",
        "last": 2,
        "keep": str(tmp_path / "state"),
    }
    return attempt(Trial(**defaults | changes))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("", (True, "exactly")),
        ("resumes otherwise", (True, "resumes")),
        ("ignores its state", (True, "anew")),
        ("does not repeat", (False, "resumes")),
    ],
)
def test_a_rehearsal_classifies_a_trainer_by_repetition_and_resumption(
    tmp_path: Path, fault: str, expected: tuple[bool, str]
) -> None:
    whole = attempted(tmp_path, fault)
    repeated_attempt = attempted(tmp_path, fault)
    resumed_attempt = attempted(tmp_path, fault, first=1, state_file=str(tmp_path / "state0"), keep="")
    untrained_attempt = attempted(tmp_path, fault, first=2, state_file=str(tmp_path / "state1"), keep="")
    assert untrained_attempt.outcomes == (repeated_attempt.outcomes if expected[0] else untrained_attempt.outcomes)
    assert behaviour(whole, repeated_attempt, resumed_attempt, untrained_attempt) == expected
    assert behaviour(whole, repeated_attempt, None, untrained_attempt) == (expected[0], "anew")


def test_a_rehearsal_returns_all_facts_that_a_plan_needs(tmp_path: Path) -> None:
    facts = rehearsed_python(tmp_path)
    assert (facts.problem, facts.repeats, facts.resumption, facts.evaluates_alike) == ("", True, "exactly", True)
    assert (facts.evaluations, facts.metrics) == (3, {"Loss/train": "loss_train"})
    assert facts.settings == {"a": {"lr": 1.0, "fault": ""}, "b": {"lr": 0.1, "fault": ""}}


def evaluating(tmp_path: Path, outcome: str, **changes: Any) -> Any:
    """A trainer whose training leaves a global behind, and whose evaluation gives `outcome`, rehearsed."""
    path = Path(trainers.python_file(tmp_path))
    leave_global = "LEFT.append(1), (run.folder / 'kept').write_text('1')"
    text = path.read_text().replace("run.alive(1)", leave_global).replace('[state["x"]] * 3', outcome)
    path.write_text(f"{text}\n\nLEFT = []\n")
    return rehearse(trainers.question(str(path), tmp_path, **changes))


@pytest.mark.parametrize(
    ("outcome", "points", "resumption", "alike"),
    [
        ('state["x"] + bool(LEFT)', 3, "resumes", False),
        ('state["x"] + bool(LEFT)', 1, "anew", False),
        ('state["x"] + float((run.folder / "kept").read_text())', 3, "exactly", True),  # a run keeps its folder
        ('state["x"] + random.SystemRandom().random()', 3, "resumes", True),  # it does not repeat anywhere
        ('state["x"] + (run.point == 2)', 3, "resumes", False),  # a run that is taken up for it begins where it ends
    ],
)
def test_a_rehearsal_detects_an_evaluation_that_depends_on_training_leftovers(
    tmp_path: Path, outcome: str, points: int, resumption: str, alike: bool
) -> None:
    facts = evaluating(tmp_path, outcome, points=points)
    assert (facts.problem, facts.resumption, facts.evaluates_alike) == ("", resumption, alike)


def test_an_evaluation_that_fails_in_a_new_process_is_refused(tmp_path: Path) -> None:
    problem = evaluating(tmp_path, 'state["x"] + LEFT[0]').problem
    assert problem.startswith("evaluate(run, state) failed in a process that has not trained: IndexError: list index")
    assert problem.endswith("(mine.py, line 24); it receives nothing but the state")


def test_a_trainer_that_ignores_its_seed_is_refused(tmp_path: Path) -> None:
    problem = rehearsed_python(tmp_path, "ignores its seed").problem
    assert re.match(r"3 seeds gave the same result \(score.*so every seed would repeat the same run", problem)


def test_a_trainer_that_exits_is_reported_with_the_line(tmp_path: Path) -> None:
    path = Path(trainers.python_file(tmp_path))
    path.write_text(path.read_text().replace("run.alive(1)", "raise SystemExit(0)"))
    assert rehearse(trainers.question(str(path), tmp_path)).problem == "SystemExit: 0 (mine.py, line 19)"
    path.write_text("import sys\nsys.exit()\n")
    assert rehearse(trainers.question(str(path), tmp_path)).problem.startswith("running mine.py failed: SystemExit")


def test_a_command_is_rehearsed_with_the_variables_of_a_run(tmp_path: Path) -> None:
    command = trainers.shell_command(tmp_path)
    assert rehearse(trainers.question(command, tmp_path, threads=3)).problem == ""
    rehearsal_variables = trainers.variables(tmp_path)
    spec = trainers.spec(command, tmp_path, {}, directory=tmp_path)
    spec = msgspec.structs.replace(spec, arithmetic=Arithmetic(threads=3))
    open_session(spec, tmp_path, ("",)).train(0, lambda step: None, lambda step: None)
    assert rehearsal_variables == trainers.variables(tmp_path)
    assert (rehearsal_variables["OMP_NUM_THREADS"], rehearsal_variables["MKL_NUM_THREADS"]) == ("3", "3")
    assert (rehearsal_variables["CUDA_VISIBLE_DEVICES"], rehearsal_variables["CUBLAS_WORKSPACE_CONFIG"]) == (
        "",
        ":4096:8",
    )


def see_gpus(monkeypatch: pytest.MonkeyPatch, uuids: str) -> None:
    """Make torch see a GPU for each letter."""
    monkeypatch.setattr(rehearsal_setup, "gpu_is_there", lambda: bool(uuids))
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(uuids))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid=uuids[index]))


@pytest.mark.parametrize(
    ("visible", "uuids", "gpus", "per_run", "visible_gpu"),
    [
        ("", "ab", (), 1, ""),
        ("", "ab", ("cuda",), 1, "GPU-a"),
        ("", "ab", ("cuda:1", "cuda:0"), 1, "GPU-b"),
        ("", "ab", ("cuda:7",), 1, ""),
        ("MIG-7", "a", ("cuda",), 1, "MIG-7"),  # an instance has a name of its own
        ("", "abc", ("cuda",), 2, "GPU-a,GPU-b"),
        ("", "abc", ("cuda:2", "cuda:1"), 2, "GPU-c,GPU-b"),
        ("", "", ("cuda",), 2, ""),  # a machine without GPUs
    ],
)
def test_a_rehearsal_uses_only_the_gpus_of_the_first_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    visible: str,
    uuids: str,
    gpus: tuple[str, ...],
    per_run: int,
    visible_gpu: str,
) -> None:
    see_gpus(monkeypatch, uuids)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    command = trainers.shell_command(tmp_path)
    assert rehearse(trainers.question(command, tmp_path, gpus=gpus, devices_per_run=per_run)).problem == ""
    assert trainers.variables(tmp_path)["CUDA_VISIBLE_DEVICES"] == visible_gpu


@pytest.mark.parametrize("gpus", [("cuda",), ("cuda:0", "cuda:1")])
def test_more_gpus_per_run_than_the_pool_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: tuple[str, ...]
) -> None:
    see_gpus(monkeypatch, "ab")
    command = trainers.shell_command(tmp_path)
    problem = rehearse(trainers.question(command, tmp_path, gpus=gpus, devices_per_run=3)).problem
    assert problem == "⟦devices_per_run=3⟧, but the pool has 2 GPUs"
    assert not (tmp_path / "variables").exists()


def test_a_rehearsal_of_a_command_measures_outcome_time_and_memory(tmp_path: Path) -> None:
    facts = rehearsed_command(tmp_path)
    assert re.fullmatch(r"1\.\d+, in r\.json, return", facts.found)
    assert 0.0 < facts.point_s < 30.0
    assert 5 << 20 < facts.memory_bytes < 50 << 20
    assert facts.interpreter == "", "it is run by the Python of the tests"


def test_a_rehearsal_of_a_python_trainer_measures_outcome_and_memory(tmp_path: Path) -> None:
    facts = rehearsed_python(tmp_path)
    assert re.fullmatch(r"\d\.\d+, the mean of the 3 outcomes that evaluate returned", facts.found)
    assert facts.memory_bytes > 50 << 20


CURVE = """
import random, sys
random.seed(int(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    print("score:", random.random())
"""


def rehearsed_curve(tmp_path: Path, length: int, **changes: Any) -> TrainerFacts:
    (tmp_path / "curve.py").write_text(CURVE)
    command = f"{sys.executable} curve.py {{seed}} {{n}} {{out}}"
    groups = {"a": {"n": length}}
    return rehearse(trainers.question(command, tmp_path, outcome="score", groups=groups, **changes))


def test_a_rehearsal_reports_the_number_of_values_in_a_summary(tmp_path: Path) -> None:
    facts = rehearsed_curve(tmp_path, 40, outcome_summary="mean-last-10")
    assert (facts.problem, facts.source) == ("", "stdout:score")
    assert re.match(
        r"0\.\d+, the mean of the last 10 of 40 values, up to line 40 of its output: score: 0\.", facts.found
    )


def test_a_rehearsal_refuses_a_summary_of_a_single_value(tmp_path: Path) -> None:
    problem = rehearsed_curve(tmp_path, 1, outcome_summary="max").problem
    assert re.match(r"line 1 of its output: .* has one value only, so ⟦outcome_summary⟧ has nothing to sum", problem)
    assert rehearsed_curve(tmp_path, 40, outcome_summary="max", rehearsal={"n": "1"}).problem == ""


def test_a_rehearsal_does_not_try_to_resume_a_command(tmp_path: Path) -> None:
    command = f"{trainers.command(tmp_path)} {{resume}}"
    facts = rehearse(trainers.question(command, tmp_path))
    assert (facts.problem, facts.resumption) == ("", "untried")


def test_a_python_trainer_is_rehearsed_with_the_variables_of_a_worker(tmp_path: Path) -> None:
    path = Path(trainers.python_file(tmp_path))
    names = "('OMP_NUM_THREADS', 'CUDA_VISIBLE_DEVICES', 'CUBLAS_WORKSPACE_CONFIG')"
    raise_variables = f"raise ValueError(str([os.environ.get(name) for name in {names}]))"
    path.write_text(
        path.read_text().replace("run.alive(1)", raise_variables).replace("import random", "import os, random")
    )
    assert rehearse(trainers.question(str(path), tmp_path, threads=2)).problem == "['2', '', ':4096:8']"


@pytest.mark.parametrize(("lr", "repeats"), [("1", True), ("9", False)])
def test_a_rehearsal_determines_whether_a_command_is_repeatable(tmp_path: Path, lr: str, repeats: bool) -> None:
    facts = rehearsed_command(tmp_path, lr)
    assert (facts.problem, facts.repeats, facts.resumption) == ("", repeats, "anew")
    assert facts.outcome_repeats == repeats
    assert (facts.files, facts.evaluations, facts.shortened) == (("train.py",), 1, "")


def test_a_command_that_ignores_its_seed_or_fails_is_refused(tmp_path: Path) -> None:
    assert "3 seeds gave the same result (return 0.134364)" in rehearsed_command(tmp_path, "0").problem
    assert "ValueError: lr must be positive" in rehearsed_command(tmp_path, rehearsal={"lr": "-1"}).problem
    assert rehearsed_command(tmp_path, rehearsal={"lr": "3"}).shortened == "lr=3"
    facts = rehearse(trainers.question("no-such-program {seed}", tmp_path))
    assert "no-such-program: No such file or directory" in facts.problem


def test_a_trainer_whose_seeds_differ_only_by_rounding_is_refused(tmp_path: Path) -> None:
    """As on a GPU whose sums depend on their order: no two runs are equal."""
    fixed = "10 + random.Random(1).random()"
    # Each process adds its own multiple of 1e-6: random noise could differ much more between seeds than repeats.
    count = (
        f"with open({str(tmp_path / 'processes')!r}, 'ab') as file:\n    file.write(b'.')\n    process = file.tell()\n"
    )
    noise = "process * 1e-6"
    command = trainers.command(tmp_path)
    script = tmp_path / "train.py"
    drawn = '(random.SystemRandom() if lr == "9" else random).random()'
    script.write_text(count + script.read_text().replace(drawn, f"{fixed} + {noise}"))
    path = Path(trainers.python_file(tmp_path))
    path.write_text(count + path.read_text().replace("draw.random()", f"{fixed} + {noise}"))
    for reference in (command, str(path)):
        problem = rehearse(trainers.question(reference, tmp_path)).problem
        assert re.match(r"3 seeds differ no more than one seed run 3 times, and only by rounding \(\w+ \d+\.", problem)


SHORT_LIMITS = IdleLimits(with_result_s=0.1)
PAUSES = "import signal; signal.pause()"


@pytest.fixture
def frequent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at a program ten times a second, and not once, because its limits are that short."""
    for module in (running, python_rehearsal):
        monkeypatch.setattr(module, "_LOOK_S", 0.1)


@pytest.mark.usefixtures("frequent_looks")
def test_a_command_that_idles_after_its_result_needs_the_end_idle_flag(
    tmp_path: Path,
) -> None:
    command = trainers.command(tmp_path)
    with (tmp_path / "train.py").open("a") as file:
        file.write(PAUSES)
    problem = rehearse(trainers.question(command, tmp_path), limits=SHORT_LIMITS).problem
    assert re.match(r"the command wrote its result \(return 1\.\d+\), then used no CPU .* use ⟦end_idle⟧:", problem)
    facts = rehearse(trainers.question(command, tmp_path, ends_idle=True), limits=SHORT_LIMITS)
    assert (facts.problem, facts.ends_idle, facts.repeats) == ("", True, True)


@pytest.mark.usefixtures("frequent_looks")
@pytest.mark.parametrize(
    ("code", "limits", "complaint"),
    [
        (PAUSES, IdleLimits(without_result_s=0.1), r"used no CPU time and wrote nothing for 0\.1 s, so it was ended"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
            IdleLimits(with_result_s=0.1),
            r"was stopped by a signal \(SIGSTOP or the like\)",
        ),
    ],
)
def test_an_idle_trainer_is_ended(tmp_path: Path, code: str, limits: IdleLimits, complaint: str) -> None:
    command = trainers.command(tmp_path)
    path = Path(trainers.python_file(tmp_path))
    (tmp_path / "train.py").write_text(code)
    path.write_text(path.read_text().replace("run.alive(1)", code))
    for reference in (command, str(path)):
        assert re.search(complaint, rehearse(trainers.question(reference, tmp_path), limits=limits).problem)


@pytest.mark.parametrize(
    ("measure", "complaint"),
    [
        (
            Measure(name="outcome", label="r", better="higher", low=10.0, high=20.0),
            r"r was [\d.]+ .*⟦outcome_range=10\.\.20⟧;",
        ),
        (
            Measure(name="outcome", label="r", better="lower", high=0.5),
            r"r was [\d.]+ .*outside ⟦outcome_range=\.\.0\.5⟧;",
        ),
    ],
)
def test_an_outcome_outside_the_declared_range_is_refused(tmp_path: Path, measure: Measure, complaint: str) -> None:
    groups = {"a": {"lr": "1"}}
    for reference in (trainers.command(tmp_path), trainers.python_file(tmp_path)):
        assert re.search(complaint, rehearse(trainers.question(reference, tmp_path, groups=groups), measure).problem)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("python train.py train.py ./conf.yaml /etc/passwd no.py {out}", ("train.py", "conf.yaml")),
        ("./train.py --seed {seed}", ("train.py",)),
        ("train.py {seed}", ()),  # a program of that name is looked for elsewhere
        ("python train.py --config=conf.yaml --out={out}", ("train.py", "conf.yaml")),
        ("python -m train {seed}", ("train.py",)),
        ("python -m lab.train {seed}", ("lab/train.py",)),
        ("python -m lab {seed}", ("lab/__main__.py",)),
        ("python train.py --conf={conf} {seed}", ("train.py", "conf.yaml", "more.yaml")),  # of any group
    ],
)
def test_a_command_has_only_files_below_its_working_directory(
    tmp_path: Path, command: str, files: tuple[str, ...]
) -> None:
    (tmp_path / "lab").mkdir()
    for name in ("train.py", "conf.yaml", "more.yaml", "{out}", "lab/train.py", "lab/__main__.py"):
        (tmp_path / name).touch()
    groups = ({"conf": "conf.yaml"}, {"conf": "more.yaml"}, {"conf": 3})
    assert named_files(command, str(tmp_path), groups) == files


def test_a_command_that_fails_for_a_further_group_is_refused_with_its_name(tmp_path: Path) -> None:
    groups = {"a": {"lr": "1"}, "b": {"lr": "2"}, "low": {"lr": "-1"}}
    problem = rehearse(trainers.question(trainers.command(tmp_path), tmp_path, groups=groups)).problem
    assert re.match(r"group 'low': .* ended with exit status 1: .*ValueError: lr must be positive", problem)


def test_a_python_trainer_that_breaks_for_a_further_group_is_refused_with_its_name(tmp_path: Path) -> None:
    groups = {"a": {"lr": "1"}, "bad": {"fault": "breaks"}}
    problem = rehearse(trainers.question(trainers.python_file(tmp_path), tmp_path, groups=groups)).problem
    assert problem.startswith("group 'bad': score was nan in the rehearsal")
