"""Goldens of small experiments that really run: by the command line, or by the engine with drawn outcomes."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import golden_files
import msgspec
from support.commands.in_process import esper_ab
from support.goldens import golden_experiments
from support.plans import fake_plans
from support.workers import fake_worker

from esper_ab.campaign.extending import extension
from esper_ab.contracts.rng import run_path
from esper_ab.control import experiment_run
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.launchers.inline import InlineLauncher

Make = Callable[[], dict[str, Any]]  # in a folder where `prepare` was called
_FOLDER = Path("experiments/golden")
_ONE_CORE = ("--devices", "cpu:0", "--launcher", "inline")
_SMALL = (
    "--steps",
    "6",
    "--n-envs",
    "2",
    "--eval-episodes",
    "2",
    "--set",
    "policy.hidden=16",
    "--set",
    "ppo.epochs=1",
)
_TINY = ("--episodes", "1", *_SMALL)
_TRAINER = (
    "mine.py",
    "--higher",
    "score",
    "--margin",
    "2",
    "--rehearsal",
    "fails=0,breaks=0",
    "--episodes",
    "1",
    "--eval-episodes",
    "1",
)
_RANGE = ("--outcome-range", "0..100")
_KILLED_AT = 45  # lines of the journal
_LAUNCHER = InlineLauncher("support.workers.fake_worker:main_in_thread")


# --- by the command line -------------------------------------------------------------------------------------------


def _command(*arguments: str, statuses: tuple[int, ...] = (0,)) -> int:
    """Run a command; return its exit status, which must be one of `statuses`."""
    ended = esper_ab(*arguments)
    if ended.returncode not in statuses:
        raise SystemExit(f"{' '.join(arguments)}: exit status {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.returncode


def _launched(*flags: str, statuses: tuple[int, ...] = (0,), joint: bool = False) -> Make:
    def make() -> dict[str, Any]:
        status = _command("launch", *flags, "--name", _FOLDER.name, "--quiet", statuses=statuses)
        read_golden = golden_experiments.joint_golden if joint else golden_experiments.experiment_golden
        return {"status": status, **read_golden(_FOLDER)}

    return make


def _growth(groups: str, *flags: str, seeds: int = 6, **settings: Any) -> Make:
    return _launched("--groups", groups, "--seeds", str(seeds), *_TINY, *(flags or ()), *_ONE_CORE, **settings)


def _trained(*flags: str, seeds: int = 8, **settings: Any) -> Make:
    groups = () if "--groups" in flags else ("--groups", "a,b")
    return _launched(*_TRAINER, *groups, "--seeds", str(seeds), *flags, *_ONE_CORE, **settings)


def _audited() -> dict[str, Any]:
    _command(
        "growth",
        "rewards",
        "shaped",
        "sparse",
        "--schedules",
        "8",
        "--search",
        "0",
        "--steps",
        "6",
        "--out",
        "reward-audits/rewards",
    )
    return _growth("shaped,sparse", "--reward-audit", "reward-audits/rewards", seeds=1)()


def _killed() -> dict[str, Any]:
    """Kill an experiment without warning while its third replicate trains, then resume it."""
    line = (
        sys.executable,
        "-m",
        "esper_ab.commands.cli",
        "launch",
        "--groups",
        "shaped,sparse",
        "--seeds",
        "6",
        *_SMALL,
        "--episodes",
        "3",
        "--devices",
        "cpu:0",
        "--name",
        _FOLDER.name,
        "--quiet",
    )
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal = _FOLDER / JOURNAL_NAME
    while process.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") < _KILLED_AT):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    status = _command("resume", str(_FOLDER), "--quiet")
    return {"status": status, **golden_experiments.experiment_golden(_FOLDER)}


def _begun() -> dict[str, Any]:
    """Make a joint experiment with one part never begun and another in progress."""
    _trained("--group", "a:trainer.shift=4", "--grid", "trainer.sd=0.5,2,4", joint=True)()
    first_folder, second_folder, _ = sorted(path.parent for path in _FOLDER.glob(f"*/{JOURNAL_NAME}"))
    shutil.rmtree(first_folder)
    lines = (second_folder / JOURNAL_NAME).read_bytes().splitlines(keepends=True)
    (second_folder / JOURNAL_NAME).write_bytes(b"".join(lines[: len(lines) // 2]))
    return golden_experiments.joint_golden(_FOLDER)


def _judged_directory() -> dict[str, Any]:
    """Judge an experiment directory by a plan written before it."""
    from esper_ab.readers.external_plan import read_plan
    from esper_ab.readers.joint import read_experiments

    _command("design", "--groups", "a,b", "--seeds", "8", "--margin", "2", "--worst", "0")
    _trained(*_RANGE, "--group", "a:trainer.shift=4", "--group", "b:trainer.fails=0.2", statuses=(0, 3))()
    plan = read_plan(Path("plan.json"))
    return golden_experiments.planned_table_golden(plan, read_experiments([("", _FOLDER)], plan.scales))


# --- by the engine, with outcomes that are drawn -------------------------------------------------------------------


@contextmanager
def _drawing(means: Mapping[str, float], sd: float, drift: float, faults: str) -> Iterator[None]:
    """Make workers report means + shared noise + own noise + drift x replicate (first group), and fail as planned."""
    first_group = next(iter(means))

    def draw_accuracy(spec: Any, episode: int, env: int) -> float:
        path = run_path(spec.rng_seed, spec.ref.replicate, spec.rng_label) / "fake" / episode / env
        shared_part = random.Random(path.key()).gauss(0.0, 3.0)
        noise = random.Random(f"{path.key()} {spec.ref.group_id[0]}").gauss(0.0, sd) if sd else 0.0
        drift_part = drift * spec.ref.replicate if spec.ref.group_id == first_group else 0.0
        return 50.0 + means[spec.ref.group_id] + shared_part + noise + drift_part

    original_accuracy = fake_worker.accuracy
    fake_worker.accuracy = draw_accuracy
    os.environ[fake_worker.FAULT_VARIABLE] = faults
    try:
        yield
    finally:
        fake_worker.accuracy = original_accuracy
        del os.environ[fake_worker.FAULT_VARIABLE]


def _drawn(
    means: Mapping[str, float],
    sd: float = 2.0,
    *,
    drift: float = 0.0,
    faults: str = "",
    extend_to: int = 0,
    kept_lines: int = 0,
    **settings: Any,
) -> Make:
    """Draw outcomes with `means` by group; `kept_lines`: number of journal lines to keep."""

    def make() -> dict[str, Any]:
        folder = Path.cwd()
        small_settings = {"episodes": 1, "n_envs": 1, "margin": 2.0, "eval_episodes": 1}
        plan = fake_plans.plan(groups=tuple(means), **small_settings | settings)
        with _drawing(means, sd, drift, faults):
            experiment_run.run(plan, folder, _LAUNCHER, ())
            if extend_to:
                experiment_run.extend(folder, lambda history: extension(folder, history, extend_to), _LAUNCHER, ())
        if kept_lines:
            journal = folder / JOURNAL_NAME
            journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:kept_lines]))
        return golden_experiments.experiment_golden(folder)

    return make


_UNLIKE = {"a": 4.0, "b": 0.0}
_LIKE = {"a": 0.5, "b": 0.0}
_ARITHMETIC = msgspec.structs.replace(fake_plans.plan().experiment.arithmetic, deterministic=False)

GOLDENS: dict[str, Make] = {
    # what is trained for real
    "growth_a_a": _growth("a=shaped,b=shaped"),
    "growth_three_groups": _growth("shaped,simplified,sparse"),
    "growth_controllers": _growth("heuristic,random,wait", "--control", "random", "--untested", "wait"),
    "growth_own_reward": _growth("shaped,mine=gain.py:reward"),
    "growth_audited": _audited,
    "growth_unpaired": _growth("shaped,sparse", "--unpaired"),
    "growth_sequence": _growth("shaped,sparse", "--placement", "sequence", "--outcome-over", "curve-mean"),
    "growth_two_devices": _launched(
        "--groups",
        "shaped,sparse",
        "--seeds",
        "6",
        *_TINY,
        "--devices",
        "cpu:0",
        "cpu:1",
        "--sync",
        "independent",
    ),
    "growth_killed_and_resumed": _killed,
    "cartpole": _launched(
        "--task",
        "gym:CartPole-v1",
        "--group",
        "low:ppo.lr=1e-4",
        "--group",
        "high:ppo.lr=1e-2",
        "--groups",
        "low=env,high=env",
        "--margin",
        "5",
        "--seeds",
        "6",
        "--episodes",
        "2",
        "--steps",
        "60",
        "--n-envs",
        "4",
        "--eval-episodes",
        "4",
        "--set",
        "policy.hidden=16",
        *_ONE_CORE,
    ),
    "trainer_file": _trained("--group", "a:trainer.shift=4"),
    "trainer_lost_with_worst": _trained(
        *_RANGE,
        "--group",
        "a:trainer.shift=4,trainer.fails=0.25",
        seeds=10,
        statuses=(0, 3),
    ),
    "trainer_no_number": _trained(*_RANGE, "--group", "b:trainer.breaks=0.3"),
    "trainer_lost": _trained("--group", "a:trainer.shift=4,trainer.fails=0.25", seeds=10, statuses=(0, 3)),
    "trainer_command": _launched(
        f"{sys.executable} train.py {{seed}} {{shift}} {{out}}",
        "--lower",
        "result.json:score",
        "--outcome-unit",
        "J",
        "--margin",
        "2",
        "--group",
        "a:trainer.shift=0",
        "--group",
        "b:trainer.shift=-4",
        "--seeds",
        "6",
        *_ONE_CORE,
    ),
    "joint_tasks": _launched(
        "--groups",
        "wait,random",
        "--task",
        "synthetic,digits",
        "--seeds",
        "6",
        *_TINY,
        *_ONE_CORE,
        joint=True,
    ),
    "joint_grid": _trained("--group", "a:trainer.shift=4", "--grid", "trainer.sd=0.5,2", joint=True),
    "joint_grid_lost": _trained(
        *_RANGE,
        "--group",
        "a:trainer.shift=4,trainer.fails=0.2",
        "--grid",
        "trainer.sd=0.5,2",
        joint=True,
        statuses=(0, 3),
    ),
    "joint_begun": _begun,
    "joint_three_groups": _trained(
        "--groups",
        "a,b,c",
        "--control",
        "c",
        "--group",
        "a:trainer.shift=4",
        "--grid",
        "trainer.sd=0.5,2,4",
        seeds=6,
        joint=True,
    ),
    "judged_directory": _judged_directory,
    # by the engine
    "looks_early_stop": _drawn(_UNLIKE, seeds=16, looks=(12, 16)),
    "looks_no_early_stop": _drawn(_UNLIKE, seeds=16, looks=(12, 16), early_stop=False),
    "looks_undecided": _drawn(_LIKE, 3.0, seeds=16, looks=(12, 16)),
    "looks_own": _drawn({"a": 2.0, "b": 0.0}, seeds=12, looks=(6, 8, 10, 12)),
    "looks_alpha_passed_on": _drawn({"a": 9.0, "b": 0.0, "c": 1.5}, 1.0, seeds=20, looks=(10, 14, 20), cores=3),
    "looks_group_leaves": _drawn(
        {"a": 0.0, "b": 8.0, "c": 0.5, "w": -20.0},
        1.5,
        seeds=16,
        looks=(12, 16),
        control="a",
        untested=("w",),
        cores=4,
    ),
    "looks_moderated": _drawn(
        {"a": 4.0, "b": 0.0, "c": 1.0}, 1.5, seeds=16, looks=(12, 16), variances="moderated", cores=3
    ),
    "looks_futility": _drawn({"a": 0.0, "b": 0.0}, 1.5, seeds=24, looks=(12, 16, 24), futility=0.8),
    "looks_not_worse": _drawn({"a": 0.2, "b": 0.0, "c": -4.0}, 0.7, seeds=24, control="b", cores=3, claim="not-worse"),
    "looks_cut_off": _drawn(_LIKE, 3.0, seeds=16, looks=(12, 16), kept_lines=140),
    "equivalent": _drawn({"a": 0.1, "b": 0.0}, 0.4, seeds=16, looks=(12, 16)),
    "better_below_margin": _drawn({"a": 1.0, "b": 0.0}, 0.4, seeds=16, looks=(16,)),
    "anytime": _drawn({"a": 3.0, "b": 0.0}, 1.5, seeds=2, open_ended=True),
    "extended": _drawn(_LIKE, 2.0, seeds=6, extend_to=12),
    "identical_settings": _drawn({"a1": 0.0, "a2": 0.0}, seeds=6, cores=1, placement="share"),
    "constant_difference": _drawn({"a": 3.0, "b": 0.0}, 0.0, seeds=8),
    "one_replicate": _drawn(_UNLIKE, seeds=1),
    "unpaired": _drawn(_UNLIKE, seeds=10, unpaired=True),
    "drifting": _drawn(_UNLIKE, 1.0, drift=0.5, seeds=12),
    "lost": _drawn(_UNLIKE, 1.5, seeds=10, faults="raise:a/3:1,raise:a/7:2"),
    "lost_with_worst": _drawn(_UNLIKE, 1.5, seeds=10, outcome_range="0..", faults="raise:a/3:1,raise:a/7:2"),
    "lost_in_both": _drawn(_LIKE, 0.4, seeds=18, looks=(18,), faults="raise:a/3:1,raise:b/7:2,raise:b/9:0"),
    "places_aliased": _drawn(_UNLIKE, seeds=10, order="fixed", arithmetic=_ARITHMETIC),
    "places_adjusted": _drawn(_UNLIKE, seeds=10, arithmetic=_ARITHMETIC),
    "places_shuffled": _drawn(
        {"a": 4.0, "b": 0.0, "c": 0.0}, seeds=9, order="shuffled", arithmetic=_ARITHMETIC, cores=3
    ),
    "places_shared": _drawn(_UNLIKE, cores=1, seeds=8, placement="share"),
    "changed_code": _drawn(_UNLIKE, seeds=8, faults="sources:w01:0"),
    "alpha_of_one_percent": _drawn(_UNLIKE, seeds=8, alpha=0.01),
}


def prepare() -> None:
    """Write the user's files to the working directory."""
    for name, text in golden_files.FILES.items():
        Path(name).write_text(text.lstrip("\n"))
