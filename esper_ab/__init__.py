"""Which of these training setups trains a better policy? The control plane, without torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from esper_ab.api.auditing_rewards import audit_rewards
    from esper_ab.api.builder import create_experiment
    from esper_ab.api.comparing import ComparedExperiments, compare_experiments
    from esper_ab.api.declared import ABExperiment, ABVariant
    from esper_ab.api.external import OutcomeVerdicts, compare_outcomes, design_comparison, judge_outcomes
    from esper_ab.api.loaded import LoadedExperiment, load_experiment
    from esper_ab.api.requested import parse_experiment
    from esper_ab.api.results import Results, RunResult
    from esper_ab.api.running import run_ab_test
    from esper_ab.api.training import compare_training
    from esper_ab.contracts.errors import UsageError
    from esper_ab.contracts.trainer import TrainerSettings

__version__ = "0.6.0"
__all__ = [
    "ABExperiment",
    "ABVariant",
    "ComparedExperiments",
    "LoadedExperiment",
    "OutcomeVerdicts",
    "Results",
    "RunResult",
    "TrainerSettings",
    "UsageError",
    "audit_rewards",
    "compare_experiments",
    "compare_outcomes",
    "compare_training",
    "create_experiment",
    "design_comparison",
    "judge_outcomes",
    "load_experiment",
    "parse_experiment",
    "run_ab_test",
]

# Name -> module, imported on first use, because every command and every worker imports this file first.
_HOMES = {
    "ABExperiment": "esper_ab.api.declared",
    "ABVariant": "esper_ab.api.declared",
    "ComparedExperiments": "esper_ab.api.comparing",
    "compare_experiments": "esper_ab.api.comparing",
    "compare_outcomes": "esper_ab.api.external",
    "design_comparison": "esper_ab.api.external",
    "judge_outcomes": "esper_ab.api.external",
    "audit_rewards": "esper_ab.api.auditing_rewards",
    "create_experiment": "esper_ab.api.builder",
    "LoadedExperiment": "esper_ab.api.loaded",
    "OutcomeVerdicts": "esper_ab.api.external",
    "Results": "esper_ab.api.results",
    "RunResult": "esper_ab.api.results",
    "UsageError": "esper_ab.contracts.errors",
    "load_experiment": "esper_ab.api.loaded",
    "parse_experiment": "esper_ab.api.requested",
    "compare_training": "esper_ab.api.training",
    "run_ab_test": "esper_ab.api.running",
    "TrainerSettings": "esper_ab.contracts.trainer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names, for dir()."""
    return [*__all__, "__version__"]
