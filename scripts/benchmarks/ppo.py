"""Benchmark of PPO against bare Gymnasium environments and other libraries (`--sb3` interpreter), alternating."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np
from support.worlds.gym_world import gym_spec

from benchmarks.machine import spread
from benchmarks.markdown import table
from esper_ab.contracts.settings import Arithmetic, PolicySettings
from workers.kinds.gymnasium.world import GymWorld
from workers.native import library
from workers.run.session import Session

TASKS = ("CartPole-v1", "Acrobot-v1", "Pendulum-v1")
N_ENVS = 8
STEPS = 128
MINIBATCHES = 4
EPOCHS = 4
HIDDEN = 64
ROLLOUTS = {"none": 8, "lstm": 2}  # of a round
OTHER_LIBRARIES = {"none": ("stable_baselines3", "sbx"), "lstm": ("sb3_contrib",)}
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}


def measure(repeats: int, sb3: str = "") -> dict[str, Any]:
    """Return ratios for every task and kind of memory; a library missing in the interpreter `sb3` is left out."""
    return {"ppo": [_case(task, memory, max(7, repeats), sb3) for task in TASKS for memory in ROLLOUTS]}


def _case(task: str, memory: str, repeats: int, sb3: str) -> dict[str, Any]:
    rounds = {"ours": _ours(task, memory), "alone": _policy_alone(task)}
    for library_name in OTHER_LIBRARIES[memory] if sb3 else ():
        if not subprocess.run([sb3, "-c", f"import {library_name}"], stderr=subprocess.DEVNULL).returncode:
            rounds[library_name] = _other_library(sb3, library_name, task)
    seconds_by_name: dict[str, list[float]] = {name: [] for name in rounds}
    for repeat in range(repeats + 1):
        for name, play in rounds.items():
            seconds = play(ROLLOUTS[memory])
            if repeat:  # the first fills caches, and compiles
                seconds_by_name[name].append(seconds)
    steps = ROLLOUTS[memory] * N_ENVS * STEPS
    our_seconds = seconds_by_name.pop("ours")
    policy_seconds = seconds_by_name.pop("alone")
    ratios = {"environment alone ÷ ours": spread(np.divide(our_seconds, policy_seconds))}
    ratios |= {
        f"ours ÷ {library_name}": spread(np.divide(seconds, our_seconds))
        for library_name, seconds in seconds_by_name.items()
    }
    print(task, memory, {name: round(ratio["median"], 2) for name, ratio in ratios.items()}, flush=True)
    return {
        "task": task,
        "memory": memory,
        "ours_per_cpu_s": spread(np.divide(steps, our_seconds)),
        "ratios": ratios,
    }


def _timed(rollouts: Iterator[Any]) -> Callable[[int], float]:
    """Return a function that advances `rollouts` by n rollouts and returns this process's CPU seconds."""

    def play(number: int) -> float:
        begin_s = time.process_time()
        for _ in range(number):
            next(rollouts)
        return time.process_time() - begin_s

    return play


def _ours(task: str, memory: str) -> Callable[[int], float]:
    """Return a run of our PPO, by the first kernel that works here."""
    kernel = next(candidate for candidate in library.kernels() if not candidate.problem)
    spec = gym_spec(
        f"gym:{task}",
        n_envs=N_ENVS,
        steps=STEPS,
        episodes=1_000_000,
        rng_seed=5,
        gym={"rollout": "continues"},
        ppo={"minibatches": MINIBATCHES, "epochs": EPOCHS, "lr": 3e-4, "gamma": 0.99, "target_kl": 1e9},
        arithmetic=Arithmetic(kernel=kernel.name, kernel_build=kernel.build),
    )
    policy = PolicySettings(hidden=HIDDEN, memory=memory)
    spec = msgspec.structs.replace(spec, settings=msgspec.structs.replace(spec.settings, policy=policy))
    session = Session(spec, GymWorld(spec))
    return _timed(session.train(episode, lambda step: None, lambda step: None) for episode in count())


def _policy_alone(task: str) -> Callable[[int], float]:
    envs = [gymnasium.make(task, disable_env_checker=True) for _ in range(N_ENVS)]
    actions = [envs[0].action_space.sample() for _ in range(STEPS)]

    def rollout() -> None:
        for action in actions:
            for env in envs:
                _, _, is_terminated, is_truncated, _ = env.step(action)
                if is_terminated or is_truncated:
                    env.reset()

    for env in envs:
        env.reset()
    return _timed(rollout() for _ in count())


def _other_library(python: str, library: str, task: str) -> Callable[[int], float]:
    """Start other_ppo.py in another interpreter, with the sizes above."""
    code = Path(__file__).with_name("other_ppo.py").read_text()
    numbers = (N_ENVS, STEPS, MINIBATCHES, EPOCHS, HIDDEN)
    child = subprocess.Popen(
        [python, "-c", code, library, task, *map(str, numbers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | _ONE_THREAD,
    )

    def play(rollouts: int) -> float:
        print(rollouts * N_ENVS * STEPS, file=child.stdin, flush=True)
        return float(child.stdout.readline())

    return play


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's table."""
    return [
        "Steps per CPU second, one thread: medians of ratios of neighbouring rounds, and quartiles.",
        "",
        *table(
            "task | memory | ratio | median | quartiles",
            (
                [
                    case["task"],
                    case["memory"],
                    name,
                    f"{ratio['median']:.2f}",
                    f"{ratio['low']:.2f} to {ratio['high']:.2f}",
                ]
                for case in record["ppo"]
                for name, ratio in case["ratios"].items()
            ),
        ),
    ]
