"""A saved policy: one file with everything needed to run the policy; loading the file cannot execute code.

policy = load("experiments/demo/policies/shaped/0.pt")
decisions = policy.decider(greedy=False).decide(view, uniforms)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from esper_ab.contracts.regular_file import NotRegular, read_regular
from esper_ab.contracts.run_files import FILE_LIMIT_BYTES
from esper_ab.contracts.worker_order import RunSpec
from workers.environments import Controller, kind_of
from workers.ppo.agent import PPOAgent
from workers.ppo.making import possible
from workers.storage import durable, state_bytes

FORMAT = 3
msgspec.json.Decoder(RunSpec)  # built now, in one thread: tests/house/test_decoders.py


@dataclass(frozen=True)
class SavedPolicy:
    """A policy with the RunSpec that it was trained under. `agent` is None for a controller that does not learn."""

    spec: RunSpec
    agent: PPOAgent | None

    def decider(self, *, greedy: bool) -> Controller[Any]:
        """Return the policy as a controller, frozen with its normaliser; `greedy` has no effect without an agent."""
        if self.agent is None:
            return kind_of(self.spec.task).controller(self.spec)
        self.agent.frozen = True
        self.agent.greedy = greedy
        return self.agent


def save(experiment_dir: Path, spec: RunSpec, agent: PPOAgent | None) -> str:
    """Write the policy file of a run durably; return its sha256. After an OSError, a previous file is unchanged."""
    agent_state = None if agent is None else agent.state()
    state = {"format": FORMAT, "spec": msgspec.to_builtins(spec), "agent": agent_state}
    return durable.write(experiment_dir, spec.policy_file, state_bytes.to_bytes(state))


def load(path: str | Path) -> SavedPolicy:
    """Load a policy file without executing anything in it; ValueError with the remedy if the file is no policy file.

    If the kernel of the policy's run is not available here, torch computes the decisions.
    """
    try:
        data = read_regular(Path(path), FILE_LIMIT_BYTES)
    except IsADirectoryError:
        raise ValueError(f"{str(path)!r} is a folder; name the .pt files in it") from None
    except FileNotFoundError:
        raise ValueError(f"no policy file {str(path)!r}; a run keeps them under policies/<group>/") from None
    except NotRegular as error:
        raise ValueError(f"{str(path)!r} {error.strerror}; a run keeps policies under policies/<group>/") from None
    try:
        state = state_bytes.from_bytes(data)
    except durable.FOREIGN:
        raise ValueError(f"{str(path)!r} is no policy file; a run keeps them under policies/<group>/") from None
    try:
        spec = msgspec.convert(state["spec"], RunSpec)
        if state["format"] != FORMAT:
            raise ValueError(f"format {state['format']}")
        if state["agent"] is None:
            agent = None
        else:
            agent = PPOAgent.from_state(state["agent"], possible(spec.arithmetic)[0])
    except durable.FOREIGN as error:
        reason = durable.reason(error)
        raise ValueError(f"{str(path)!r} is not a policy saved by this version of esper_ab: {reason}") from None
    return SavedPolicy(spec, agent)
