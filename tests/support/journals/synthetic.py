"""Synthetic experiments: a plan and its journal of real events, drawn quickly from an rng seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from esper_ab.contracts.evaluation import episode_sizes
from esper_ab.contracts.measures import TaskMeasures
from esper_ab.contracts.outcome_window import OutcomeOver
from esper_ab.contracts.records import (
    EnvEpisode,
    EpisodeRecord,
    EvaluatedEpisode,
    EvaluationRecord,
    HeadUse,
    PPOUpdate,
    SeedEvent,
    Timing,
)
from esper_ab.contracts.settings import ControllerSettings, GroupSettings, PPOSettings, RewardSettings
from esper_ab.contracts.worker_order import Lane, RunSpec
from esper_ab.design.counterbalance import order
from esper_ab.design.make_design import make_design
from esper_ab.journal.events import (
    SCHEMA,
    AnyEvent,
    EpisodeRecorded,
    ExperimentEnded,
    ExperimentStarted,
    MilestoneReleased,
    PlanExtended,
    RunEvaluated,
    RunReady,
    RunStarted,
    WorkerStarted,
)
from esper_ab.plan.blocks import extend
from esper_ab.plan.plan import Block, EarlierExperiment, Plan
from esper_ab.settings.differences import Difference
from esper_ab.settings.experiment import Group, ResolvedExperiment
from support.plans.worker_orders import run_order
from workers.kinds.growth.measures import MEASURES

MODES = ("minimal", "shaped", "simplified", "sparse")
_OPS = tuple(name for name in MEASURES.names if name.startswith("op_"))
TIMING = Timing(total_s=1.5, train_s=0.9, validate_s=0.3, decide_s=0.1, update_s=0.2)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One group of a synthetic experiment: the end of its learning curve, and its seed modules."""

    accuracy: float = 70.0
    mode: str = "shaped"
    controller: str = "ppo"
    params: int = 800
    greedy: float = 0.0  # points that greedy actions gain over sampled ones
    stream: str = ""  # groups of one stream draw the same numbers: an A/A
    unmeasured: tuple[int, ...] = ()  # replicates in which the number of added parameters is not known
    ppo: PPOSettings = field(default_factory=PPOSettings)

    @property
    def settings(self) -> GroupSettings:
        controller = ControllerSettings(name=self.controller)
        reward = RewardSettings(mode=self.mode)
        return GroupSettings(controller=controller, ppo=self.ppo, reward=reward)


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """A synthetic experiment; `events()` is its journal."""

    groups: dict[str, Shape] = field(
        default_factory=lambda: {
            "shaped": Shape(accuracy=74.0),
            "simplified": Shape(accuracy=69.0, mode="simplified", params=500),
        }
    )
    replicates: int = 6
    episodes: int = 8
    n_envs: int = 4
    steps: int = 25
    eval_episodes: int = 8
    rng_seed: int = 11
    outcome_over: OutcomeOver = "evaluation"
    extended_by: int = 0  # replicates that the plan was extended by
    kind: str = "growth"
    measures: TaskMeasures = MEASURES
    settings: dict[str, Any] = field(default_factory=dict)  # of the experiment; they override those above
    digest: str = "0" * 64  # of the plan
    pooled_with: tuple[EarlierExperiment, ...] = ()

    def plan(self) -> Plan:
        groups = tuple(Group(name=name, settings=shape.settings) for name, shape in self.groups.items())
        lanes = tuple(Lane(name=f"cpu:{i}", devices=(f"cpu:{i}",), uuids=("",)) for i in range(len(groups)))
        experiment = msgspec.structs.replace(
            ResolvedExperiment(
                name="synthetic",
                groups=groups,
                slots=("early", "mid", "late"),
                n_envs=self.n_envs,
                episodes=self.episodes,
                steps=self.steps,
                seeds=self.replicates,
                eval_episodes=self.eval_episodes,
                rng_seed=self.rng_seed,
                outcome_over=self.outcome_over,
                devices=tuple(lane.name for lane in lanes),
                margin=self.measures.margin or 2.0,
            ),
            **self.settings,
        )
        blocks = tuple(Block(replicate=r, runs=self._runs(groups, r)) for r in range(self.replicates))
        modes = {group.name: group.settings.reward.mode for group in groups}
        differs = len(set(modes.values())) > 1
        return Plan(
            experiment=experiment,
            digest=self.digest,
            lanes=lanes,
            idle_devices=(),
            blocks=blocks,
            differences=(Difference(key="reward.mode", values=modes),) if differs else (),
            design=make_design(
                experiment,
                [tuple(spec.ref.group_id for spec in block.runs) for block in blocks],
                measures=self.measures,
            ),
            kind=self.kind,
            estimand="Mean held-out accuracy of hosts grown by the last policy, over rng seeds, on digits.",
            notes=("No GPU: CPU cores, one thread each.",),
            pooled_with=self.pooled_with or msgspec.UNSET,
        )

    def _runs(self, groups: tuple[Group, ...], replicate: int) -> tuple[RunSpec, ...]:
        """Return the runs of a block in start order, one per lane, as the planner orders them."""
        group_order = order(len(groups), replicate)
        return tuple(self._spec(groups[group], replicate, position) for position, group in enumerate(group_order))

    def _spec(self, group: Group, replicate: int, position: int) -> RunSpec:
        return run_order(
            group.settings,
            group=group.name,
            replicate=replicate,
            device=f"cpu:{position}",
            n_envs=self.n_envs,
            experiment_digest=self.digest,
            rng_seed=self.rng_seed,
            task="digits",
            slots=("early", "mid", "late"),
            episodes=self.episodes,
            steps=self.steps,
            eval_episodes=self.eval_episodes,
            eval_reward_modes=MODES,
        )

    def events(self) -> list[AnyEvent]:
        """Return the complete journal of a finished experiment."""
        plan = self.plan()
        worker_facts = {"incarnation": 0, "uuids": ("",), "torch_version": "2.13"}
        journal_events: list[AnyEvent] = [started(plan)]
        for i, lane in enumerate(plan.lanes):
            journal_events.append(WorkerStarted(worker=f"w{i}", device=lane.name, pid=100 + i, **worker_facts))
        for block in plan.blocks:
            journal_events += self._block(block)
        if self.extended_by:
            extension = extend(plan, plan.design, self.replicates, self.extended_by)
            journal_events.append(PlanExtended(extension=extension))
            for block in extension.blocks:
                journal_events += self._block(block)
        journal_events.append(ExperimentEnded(status="finished", detail=""))
        return journal_events

    def _block(self, block: Block) -> list[AnyEvent]:
        names = tuple(spec.ref.name for spec in block.runs)
        events: list[AnyEvent] = [RunStarted(run=s.ref, worker="w0", incarnation=0) for s in block.runs]
        events += [RunReady(run=s.ref, warm_up_s=0.4) for s in block.runs]
        events.append(MilestoneReleased(replicate=block.replicate, milestone=0, runs=names))
        for episode in range(self.episodes):
            events += [EpisodeRecorded(record=self.episode(spec, episode)) for spec in block.runs]
            events.append(MilestoneReleased(replicate=block.replicate, milestone=episode + 1, runs=names))
        events += [RunEvaluated(record=self.evaluation(spec)) for spec in block.runs]
        events.append(MilestoneReleased(replicate=block.replicate, milestone=self.episodes + 1, runs=names))
        return events

    def _generator(self, spec: RunSpec, episode: int) -> np.random.Generator:
        shape = self.groups[spec.ref.group_id]
        stream = shape.stream or spec.ref.group_id
        key = f"{self.rng_seed}/{stream}/{spec.ref.replicate}/{episode}"
        return np.random.default_rng(list(hashlib.sha256(key.encode()).digest()))

    def _env(self, spec: RunSpec, env: int, level: float, rng: np.random.Generator) -> EnvEpisode:
        shape = self.groups[spec.ref.group_id]
        grows = shape.controller != "wait"
        low = self.measures.outcome.low
        high = self.measures.outcome.high
        outcome = float(np.clip(level + rng.normal(0, 2.0), None if low is None else low + 10.0, high))
        fossilized = int(rng.integers(0, 3)) if grows else 0
        growth = {
            "val_accuracy": outcome + 0.5,
            "best_val_accuracy": outcome + 1.0,
            "val_loss": 0.8,
            "host_params": 1200,
            "params_added": int(shape.params + rng.integers(-50, 50)) if grows else 0,
            "germinated": fossilized + 1 if grows else 0,
            "pruned": 1 if grows else 0,
            "fossilized": fossilized,
            "contributing": fossilized,
        }
        reward = float(level / 10 + rng.normal())
        ops = (self.steps - 5, 2, 1, 1, 1, 0) if grows else (self.steps, 0, 0, 0, 0, 0)
        values = (
            {**growth, **dict(zip(_OPS, ops, strict=True))}
            if self.kind == "growth"
            else {name: float(rng.normal(100.0, 5.0)) for name in self.measures.names}
        )
        return EnvEpisode(
            env=env,
            device=spec.env_devices[env],
            steps=self.steps,
            outcome=outcome,
            reward_sum=reward,
            failed=False,
            measures={
                name: None if name == "params_added" and spec.ref.replicate in shape.unmeasured else float(value)
                for name, value in values.items()
            },
        )

    def episode(self, spec: RunSpec, episode: int) -> EpisodeRecord:
        shape = self.groups[spec.ref.group_id]
        rng = self._generator(spec, episode)
        learns = shape.controller == "ppo"
        progress = 1 - np.exp(-3 * (episode + 1) / self.episodes) if learns else 1.0
        level = 33.0 + (shape.accuracy - 33.0) * progress
        entropy = float(2.6 - 0.9 * progress + rng.normal(0, 0.05))
        ppo = PPOUpdate(
            policy_loss=-0.01,
            value_loss=0.4,
            entropy=entropy,
            op_entropy=entropy / 2,
            approx_kl=0.012,
            clip_fraction=0.08,
            explained_variance=float(0.6 * progress),
            grad_norm=0.7,
            first_ratio_error=1e-7,
            ratio_max=1.3,
            epochs_done=4,
            stopped_by_kl=False,
            advantage_std=1.1,
            return_mean=2.0,
            heads={
                "op": HeadUse(entropy=entropy / 3, learnable=1.0),
                "slot": HeadUse(entropy=entropy / 4, learnable=0.3),
                "blueprint": HeadUse(entropy=entropy / 5, learnable=0.1),
            },
        )
        return EpisodeRecord(
            run=spec.ref,
            episode=episode,
            envs=tuple(self._env(spec, i, level, rng) for i in range(self.n_envs)),
            ppo=ppo if learns else None,
            seed_events=self._seed_events(rng) if shape.controller != "wait" else (),
            timing=TIMING,
            digest=f"{shape.stream or spec.ref.group_id}-{spec.ref.replicate}-{episode}",
        )

    def _seed_events(self, rng: np.random.Generator) -> tuple[SeedEvent, ...]:
        events = []
        for env in range(self.n_envs):
            birth_epoch = int(rng.integers(1, 8))
            life = (
                ("germinated", birth_epoch, "GERMINATED", 0.0, None),
                ("advanced", birth_epoch + 3, "TRAINING", 0.0, None),
            )
            end = (
                ("pruned", birth_epoch + 9, "PRUNED", 1.0, -0.4)
                if rng.random() < 0.3
                else ("fossilized", birth_epoch + 12, "FOSSILIZED", 1.0, 6.5)
            )
            for name, step, stage, alpha, contribution in (*life, end):
                events.append(
                    SeedEvent(
                        env=env,
                        step=step,
                        slot="early",
                        event=name,
                        seed_id=f"e{env}-early-0",
                        blueprint="conv_light",
                        stage=stage,
                        alpha=alpha,
                        contribution=contribution,
                        params=700,
                    )
                )
        return tuple(events)

    def evaluation(self, spec: RunSpec) -> EvaluationRecord:
        shape = self.groups[spec.ref.group_id]
        rng = self._generator(spec, -1)
        level = shape.accuracy + rng.normal(0, 1.5)
        episodes = tuple(
            EvaluatedEpisode(
                episode=episode,
                actions=actions,
                result=self._env(spec, env, level + (shape.greedy if actions == "greedy" else 0.0), rng),
                rewards={mode: float(level / (2 + 5 * i) + rng.normal()) for i, mode in enumerate(MODES)},
            )
            for actions in ("sampled", "greedy")
            for episode, size in enumerate(episode_sizes(self.eval_episodes, self.n_envs))
            if actions == "sampled" or not episode
            for env in range(size)
        )
        return EvaluationRecord(
            run=spec.ref,
            episodes=episodes,
            policy_file=spec.policy_file,
            policy_sha256="f" * 64,
            timing=TIMING,
            digest=f"{shape.stream or spec.ref.group_id}-{spec.ref.replicate}",
        )


def started(plan: Plan) -> ExperimentStarted:
    return ExperimentStarted(
        schema=SCHEMA,
        plan=plan,
        versions={"esper_ab": "0.1.0", "torch": "2.13"},
        machine={"cpu": "test processor", "cores": "2"},
        code={"commit": "abc123", "dirty": "no"},
    )
