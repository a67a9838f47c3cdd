"""`esper-ab evaluate`: evaluate saved policies in a child process (`workers.commands.evaluate`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec

from esper_ab.analysis.code_states import code_states, named, telling
from esper_ab.commands._exit_status import command_with
from esper_ab.commands._parameters import AT_LEAST_1, json_flag, valued
from esper_ab.contracts.errors import EsperError, UsageError
from esper_ab.contracts.policies import PoliciesAnswer, PoliciesQuestion
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.run_files import FILE_LIMIT_BYTES
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible_json, visible_line
from esper_ab.control import provenance
from esper_ab.control.child_answer import answer_of
from esper_ab.journal.fold import History
from esper_ab.journal.load import load

_DECODER = msgspec.json.Decoder(PoliciesAnswer)


@command_with(
    "esper-ab evaluate experiments/EXPERIMENT/policies/shaped/*.pt",
    "esper-ab evaluate experiments/EXPERIMENT/policies/shaped/0.pt --rng-seed 7 --episodes 64",
)
@click.argument("policies", metavar="POLICY…", nargs=-1, required=True, type=click.Path())
@valued("--episodes", "N", "Number of evaluation episodes. [default: as in the run]", "eval_episodes", type=AT_LEAST_1)
@valued(
    "--rng-seed",
    "N",
    "Root of all randomness. [default: the run's own; it reproduces the evaluation on the same kind of device]",
    type=click.IntRange(min=0),
)
@valued("--device", "NAME", "Device for the environments: cpu, or a GPU such as cuda:0.", default="cpu")
@valued(
    "--import",
    "MODULE",
    "Allow a policy for gym:MODULE:ID to import this installed module. Other code named by a policy is never run.",
    "importable",
    multiple=True,
)
@json_flag
def command(policies: tuple[str, ...], json: bool, **question_fields: Any) -> None:
    """Evaluate saved policies, with frozen normalisers, in fresh episodes.

    POLICY is a file such as EXPERIMENT/policies/GROUP/SEED.pt.
    """
    check_whole(policies)
    _warn(describe_other_code(policies))
    answer = answer_of("workers.commands.evaluate", PoliciesQuestion(policies=policies, **question_fields), _DECODER)
    _warn(answer.warnings)
    if json:
        click.echo(visible_json(msgspec.json.encode(answer.rows)))
    else:
        click.echo(typeable("\n".join(answer.lines)))


def _warn(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(typeable(f"warning: {visible_line(line)}"), err=True)


def check_whole(policies: Sequence[str]) -> None:
    """Raise UsageError if a policy inside its experiment directory is not the file that its run recorded.

    Policies outside their experiment directory, and those whose journal cannot be read, are not checked.
    """
    for _, history, asked_policies in _group_by_experiment(policies):
        for name, path in asked_policies.items():
            if name not in history.runs or not path.is_file():
                continue
            evaluation = history.runs[name].evaluation
            if evaluation is None:
                continue
            sha256 = hashlib.sha256(read_regular(path, FILE_LIMIT_BYTES)).hexdigest()
            if sha256 != evaluation.policy_sha256:
                raise UsageError(
                    f"{path} is not the policy that run {name} saved: its sha256 is {sha256[:12]}…, but "
                    f"{evaluation.policy_sha256[:12]}… was recorded; to evaluate it anyway, copy it out of the "
                    "experiment directory"
                )


def _group_by_experiment(policies: Sequence[str]) -> Iterator[tuple[Path, History, dict[str, Path]]]:
    """Yield each experiment directory that has a readable journal, with its history and its policies by run name."""
    policies_by_directory: dict[Path, dict[str, Path]] = {}
    for path in map(Path, policies):
        if len(path.absolute().parents) > 2:
            policies_by_directory.setdefault(path.absolute().parents[2], {})[f"{path.parent.name}/{path.stem}"] = path
    for experiment_dir, asked_policies in policies_by_directory.items():
        with suppress(EsperError, OSError):
            yield experiment_dir, load(experiment_dir).history, asked_policies


def describe_other_code(policies: Sequence[str]) -> list[str]:
    """Return a warning for each experiment directory whose policies were trained by a different version of the code.

    Policies outside their experiment directory, and those whose journal cannot be read, are skipped.
    """
    our_code = provenance.code()
    lines = []
    for experiment_dir, history, asked_policies in _group_by_experiment(policies):
        codes = [state.code for state in code_states(history) if asked_policies.keys() & set(state.runs)]
        key = telling([our_code, *codes])
        other_codes = [named(code) for code in codes if code.get(key, "") != our_code.get(key, "")]
        if other_codes:
            lines.append(
                f"{experiment_dir.name}: trained by {' and by '.join(other_codes)}, but the code here is "
                f"{named(our_code)}: "
                "outcomes may differ from those of the run"
            )
    return lines
