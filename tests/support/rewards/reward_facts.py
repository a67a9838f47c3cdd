"""Facts for tests of rewards: chosen, random, or of a golden case."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.facts import SeedFacts, StepFacts
from workers.kinds.growth.vocabulary import Op, Stage

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "golden_rewards_sample.json").read_text())
NAN = float("nan")
LIVE_STAGES = (Stage.GERMINATED, Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED)
STAGE_POTENTIAL = {2: 1.0, 3: 2.0, 4: 3.5, 6: 5.5, 7: 6.0}

_SEED = {
    "present": False,
    "stage": 0,
    "previous_stage": 0,
    "epochs_in_stage": 0,
    "age": 0,
    "contribution": NAN,
    "total_improvement": NAN,
    "interaction_sum": 0.0,
    "acc_at_germination": NAN,
    "potential_before": 0.0,
}
_STEP = {
    "op": 0,
    "slot": -1,
    "val_acc": 50.0,
    "best_val_acc": 50.0,
    "acc_delta": NAN,
    "val_loss": 1.0,
    "loss_delta": NAN,
    "host_params": 1000,
    "total_params": 1000,
    "effective_seed_params": 0.0,
    "alpha_delta_sq_sum": 0.0,
    "fossilized": 0,
    "contributing": 0,
}
_SAME_NAME = (
    "val_acc",
    "acc_delta",
    "host_params",
    "total_params",
    "effective_seed_params",
    "alpha_delta_sq_sum",
    "acc_at_germination",
)
_SAME_NAME_OF_SEED = ("stage", "previous_stage", "epochs_in_stage", "total_improvement", "interaction_sum")


def _array(default, value, shape):
    dtype = {bool: np.bool_, int: np.int64, float: np.float64}[type(default)]
    return np.broadcast_to(np.asarray(value, dtype=dtype), shape).copy()


def make_facts(shape=(1, 1), step=3, steps=25, **values):
    """Return facts of `shape` [E, S]: those of an empty network at WAIT, except for `values`, which replace theirs.

    Each value is a scalar or an array that broadcasts.
    """
    unknown_names = values.keys() - _SEED.keys() - _STEP.keys()
    assert not unknown_names, unknown_names
    seeds = SeedFacts(**{name: _array(default, values.get(name, default), shape) for name, default in _SEED.items()})
    step_values = {name: _array(default, values.get(name, default), shape[:1]) for name, default in _STEP.items()}
    return StepFacts(seeds=seeds, step=step, steps=steps, **step_values)


def random_facts(rng, shape, step=3, steps=25):
    """Return facts of `shape` [E, S] with every stage, op and missing measurement; only WAIT has no slot."""
    n_envs, n_slots = shape

    def sometimes_nan(values, p=0.3):
        return np.where(rng.random(values.shape) < p, np.nan, values)

    op = rng.integers(len(Op), size=n_envs)
    return make_facts(
        shape,
        step,
        steps,
        present=rng.random(shape) < 0.8,
        stage=rng.choice(LIVE_STAGES, size=shape),
        previous_stage=rng.choice(LIVE_STAGES, size=shape),
        epochs_in_stage=rng.integers(0, 12, size=shape),
        age=rng.integers(0, 20, size=shape),
        contribution=sometimes_nan(rng.normal(0, 4, size=shape)),
        total_improvement=sometimes_nan(rng.normal(0, 2, size=shape)),
        interaction_sum=rng.normal(0, 3, size=shape),
        acc_at_germination=sometimes_nan(rng.uniform(20, 80, size=shape)),
        potential_before=rng.choice([0.0, 1.3, 4.1, 7.5], size=shape),
        op=op,
        slot=np.where(op == Op.WAIT, -1, rng.integers(n_slots, size=n_envs)),
        val_acc=rng.uniform(10, 90, size=n_envs),
        best_val_acc=rng.uniform(10, 90, size=n_envs),
        acc_delta=sometimes_nan(rng.normal(0, 2, size=n_envs)),
        val_loss=rng.uniform(0, 4, size=n_envs),
        loss_delta=sometimes_nan(rng.normal(0, 1, size=n_envs)),
        host_params=rng.integers(1, 10_000, size=n_envs),
        total_params=rng.integers(10_000, 50_000, size=n_envs),
        effective_seed_params=sometimes_nan(rng.uniform(0, 20_000, size=n_envs)),
        alpha_delta_sq_sum=rng.uniform(0, 2, size=n_envs),
        fossilized=rng.integers(0, 3, size=n_envs),
        contributing=rng.integers(0, 3, size=n_envs),
    )


def take_envs(facts, index):
    """Return the facts of the environments `index`, in that order."""

    def selected_arrays(part):
        return {name: value[index] for name, value in vars(part).items() if isinstance(value, np.ndarray)}

    return replace(facts, seeds=replace(facts.seeds, **selected_arrays(facts.seeds)), **selected_arrays(facts))


def _golden_potential_before(seed, settings):
    """Return Phi_prev of a golden case: one epoch earlier, or at the end of the previous stage."""
    stage = seed["stage"]
    epochs = seed["epochs_in_stage"] - 1
    if epochs < 0:
        stage = seed["previous_stage"]
        epochs = seed["previous_epochs_in_stage"]
    return STAGE_POTENTIAL.get(stage, 0.0) + min(epochs * settings.epoch_progress_bonus, settings.max_progress_bonus)


def golden_case(case, mode):
    """Return facts [1, 1] and settings of a golden case.

    None becomes NaN; WAIT has no slot; the page rewards.md defines Phi_prev.
    """
    inputs = case["inputs"]
    settings = RewardSettings(mode=mode, **inputs["config"])

    def number(value):
        return NAN if value is None else value

    values = {name: number(inputs[name]) for name in _SAME_NAME}
    seed = inputs["seed_info"]
    if seed is not None:
        values |= {name: seed[name] for name in _SAME_NAME_OF_SEED}
        values |= {
            "present": True,
            "age": seed["seed_age_epochs"],
            "contribution": number(inputs["seed_contribution"]),
            "potential_before": _golden_potential_before(seed, settings),
        }
    op = Op[inputs["action"]]
    facts = make_facts(
        step=inputs["epoch"],
        steps=inputs["max_epochs"],
        op=op,
        slot=-1 if op == Op.WAIT else 0,
        best_val_acc=inputs["host_max_acc"],
        fossilized=inputs["num_fossilized_seeds"],
        contributing=inputs["num_contributing_fossilized"],
        **values,
    )
    return facts, settings
