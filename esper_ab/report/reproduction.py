"""The shell commands that repeat an experiment. Pure."""

from __future__ import annotations

import shlex

from esper_ab.contracts.shell_command import shell_command
from esper_ab.report.content import Content


def reproduction(content: Content) -> tuple[str, ...]:
    """Return shell lines that repeat the experiment.

    `git checkout` must run in a checkout of the code; the other lines run anywhere.
    """
    history = content.history
    lines = []
    code = history.started.code
    experiment = history.plan.experiment
    if code.get("commit"):
        alteration_words = ""
        if code.get("dirty") == "yes":
            alteration_words = "; the local changes that were there are not in it"
        lines.append(f"git checkout {shlex.quote(code['commit'])}  # in a checkout of esper_ab{alteration_words}")
    new_directory = f"{content.place}-again"
    lines.append(shell_command("launch", f"{content.place}/experiment.toml", "--output-dir", new_directory))
    if history.replicates > len(history.plan.blocks) and not experiment.open_ended:
        new_experiment = f"{new_directory}/{experiment.name}"
        lines.append(shell_command("resume", new_experiment, "--seeds", str(history.replicates)))
    return tuple(lines)
