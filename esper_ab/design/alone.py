"""An experiment with one group: settings that need a comparison are refused. Pure."""

from __future__ import annotations

from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.settings.experiment import ExperimentSettings


def check_alone(experiment: ExperimentSettings, only_group: str) -> None:
    """Raise UsageError if a setting that needs a comparison is given for a single group."""
    asked_values: dict[str, object] = {
        "control": experiment.control,
        "untested": experiment.untested,
        "looks": experiment.looks,
        "futility": experiment.futility,
        "guardrails": experiment.guardrails,
        "claim": "" if experiment.claim == "difference" else experiment.claim,
        "variances": experiment.variances if experiment.variances != "own" else "",
    }
    if experiment.shape != "same":
        asked_values["shape"] = experiment.shape
    if experiment.open_ended:
        asked_values["seeds"] = "auto"
    for key, value in asked_values.items():
        if value:
            remedy = "the number of seeds fixed" if key == "seeds" else "it out"
            raise UsageError(
                SettingName(key, value),
                f" needs a comparison, but {only_group} is the only group; add another with ",
                SettingName("groups"),
                f", or leave {remedy}",
            )
