"""Whose deaths a world of faults is about: workers without torch or with it, their plan, their coordinator.

Workers with torch are started as an experiment starts them ("torch"), or forked from a coordinator that was forked from
this process ("forked"): then none of them has to import torch, and hundreds can be killed in the time of ten. Whoever
is killed is a process of its own in every crew.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from esper_ab.plan.plan import Plan
from support import children, fake_plans, stand_in


@dataclass(frozen=True, kw_only=True)
class Crew:
    """`plan`: of every world; `entry`: of its workers, with deaths planted."""

    name: str
    plan: Plan
    entry: str
    start_up_s: float  # on a machine that is not crowded: as many times longer, else

    @property
    def torch(self) -> bool:
        return self.name != "fake"


def fake(replicates: int, episodes: int) -> Crew:
    """Torch-free workers with real checkpoints."""
    plan = fake_plans.plan(seeds=replicates, episodes=episodes)
    return Crew(name="fake", plan=plan, entry="support.planted_death:worker", start_up_s=15.0)


def real(name: str, replicates: int, episodes: int) -> Crew:
    """Real workers on two lanes of this machine, with the smallest policy and hosts that still learn something."""
    from support.small_experiment import small_plan  # with torch

    return Crew(
        name=name, plan=small_plan(replicates, episodes), entry="support.planted_death:real_worker", start_up_s=120.0
    )


def coordinator(
    crew: Crew, experiment_dir: Path, life: int, floor_s: float, surroundings: tuple[dict[str, str], BinaryIO]
) -> subprocess.Popen[bytes] | Forked:
    """One more life: it begins the experiment or takes it up. `surroundings`: its environment and standard error."""
    environment, errors = surroundings
    if crew.name == "forked":
        return Forked(lambda: _forked_coordinator(crew, experiment_dir, life, floor_s), environment, errors)
    plan = experiment_dir.parent / "plan.json"
    plan.write_bytes(msgspec.json.encode(crew.plan))
    command = [sys.executable, "-m", "support.faulty_experiment", str(experiment_dir), str(life), str(plan), crew.entry]
    return subprocess.Popen(
        [*command, str(floor_s), str(crew.start_up_s)], env=children.environment(**environment), stderr=errors,
        start_new_session=True,
    )  # fmt: skip


def _forked_coordinator(crew: Crew, experiment_dir: Path, life: int, floor_s: float) -> int:
    from support import faulty_experiment, fork_launcher

    stand_in.die_with_parent()
    limits = (floor_s, crew.start_up_s)
    return faulty_experiment.lived(
        experiment_dir, str(life), crew.plan, fork_launcher.ForkLauncher(crew.entry), limits
    )


class Forked:
    """A child that calls `act` and ends with what it returns, in a session of its own; watched as a Popen is."""

    def __init__(self, act: Callable[[], int], environment: dict[str, str], errors: BinaryIO) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                os.setsid()
                os.environ.update(environment)
                os.dup2(errors.fileno(), 2)
                status = act()
            except Exception:
                sys.excepthook(*sys.exc_info())
                raise
            finally:
                os._exit(status)

    def poll(self) -> int | None:
        return self._waited(os.WNOHANG)

    def wait(self) -> int | None:
        return self._waited(0)

    def _waited(self, how: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode
