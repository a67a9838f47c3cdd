"""`esper-ab doctor`: check whether experiments can run on this machine, and suggest a remedy for each problem."""

from __future__ import annotations

import json as json_module
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from esper_ab.commands._exit_status import command_with
from esper_ab.commands._options import LAUNCHER_FLAGS, shared_options
from esper_ab.commands._parameters import PATH, Flags, switch, valued
from esper_ab.contracts.errors import EsperError, UsageError
from esper_ab.contracts.machine import Machine, Questions
from esper_ab.contracts.shell_command import typeable
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.control.nodes import ask_nodes, differences, kinds, unfit
from esper_ab.control.preflight import examine, expected_bytes
from esper_ab.health import devices, processor, storage, system
from esper_ab.health.diagnosis import Diagnosis, ok, problem
from esper_ab.settings.experiment import AskedExperiment
from esper_ab.settings.kernel import lacking_kernel

_NAMED = ("esper-ab", "torch", "numpy", "pyzmq", "msgspec", "duckdb")  # packages whose version is shown


@command_with("esper-ab doctor", "esper-ab doctor --output-dir experiments --json", "esper-ab doctor --launcher slurm")
@valued("--output-dir", "DIR", "Folder for experiment directories.", type=PATH, default=Path("experiments"))
@shared_options(*LAUNCHER_FLAGS, "json")
@switch("--verbose", "Also show the checks that passed.", "-v")
def command(output_dir: Path, json: bool, verbose: bool, **options: Any) -> int:
    """Check devices, driver, cores, memory, disk, limits and packages; suggest a remedy for each problem.

    With a launcher for several nodes, check each node and report differences between them.

    A problem means that `launch` would be refused or would fail here; the exit status is then 2. With only warnings it
    is 0. Nothing is trained, and no files are left behind.
    """
    diagnoses = [*diagnose_machine(output_dir), *_examine_nodes(output_dir, options)]
    levels = Counter(diagnosis.level for diagnosis in diagnoses)
    counts = {"problems": levels["problem"], "warnings": levels["warning"]}
    if json:
        click.echo(json_module.dumps(counts | {"diagnoses": msgspec.to_builtins(diagnoses)}))
    else:
        click.echo(typeable(describe_diagnoses(diagnoses, in_full=verbose)))
    return UsageError.exit_code if levels["problem"] else 0


def diagnose_machine(out: Path) -> Iterator[Diagnosis]:
    """Yield diagnoses of everything that experiments need here; each check follows the checks on which it depends."""
    yield from system.package_diagnoses(_NAMED)
    try:
        machine = examine(_questions())
    except EsperError as error:
        yield problem("preflight", str(error), "fix this first, because every launch starts with the preflight")
    else:
        yield from devices.device_diagnoses(machine)
        yield processor.kernel(machine.kernels, *lacking_kernel(machine))
        if machine.task_problem:
            yield problem("task", machine.task_problem, "reinstall the package, which includes the data of digits")
    yield from processor.processor_diagnoses()
    yield from storage.storage_diagnoses(out, expected_bytes(1))
    yield from system.system_diagnoses()


def _examine_nodes(out: Path, options: Flags) -> Iterator[Diagnosis]:
    """Yield diagnoses of each node of the chosen launcher, and then of differences between nodes.

    Yields nothing if the launcher has no nodes.
    """
    # Imported here, because it is slow and only launchers for several nodes need it.
    from esper_ab.campaign.launcher import make_launcher
    from esper_ab.commands._launcher_flags import read_launcher_flags

    try:
        launcher = make_launcher(read_launcher_flags(options))
    except UsageError as error:
        yield problem("launcher", str(error), "mend what it names, or use another --launcher")
        return
    if not launcher.nodes:
        return
    fit: dict[str, Machine] = {}
    for name, answer in ask_nodes(_questions(), launcher, out).items():
        topic = f"node {name}"
        if isinstance(answer, EsperError):
            yield problem(topic, str(answer), "run `esper-ab doctor` on that node to see what is wrong")
        elif reason := unfit(answer, out):
            yield problem(topic, reason, "fix the problem on that node, or leave the node out")
        else:
            fit[name] = answer
            cores = counted(len(answer.names("cpu")), "core")
            yield ok(topic, f"{cores}, {kinds(answer.devices)}, torch {answer.torch_version}")
    for difference in differences(fit):
        yield problem("nodes", difference, "install the same versions on all nodes, or choose nodes of the same kind")


def _questions() -> Questions:
    default_experiment = AskedExperiment(groups=())
    return Questions(
        task=default_experiment.task, data_dir=default_experiment.data_dir, user_rewards=(), gpus=("cuda",)
    )


def describe_diagnoses(diagnoses: list[Diagnosis], *, in_full: bool = False) -> str:
    """Return the diagnoses as text: a line for each problem or warning with its remedy below, and a summary at the end.

    With `in_full`, there is also a line for each check that passed.
    """
    width = max(len(diagnosis.topic) for diagnosis in diagnoses)
    lines = []
    for diagnosis in diagnoses:
        if diagnosis.level == "ok" and not in_full:
            continue
        lines.append(f"{diagnosis.level:<7}  {diagnosis.topic:<{width}}  {visible_line(diagnosis.what)}")
        if diagnosis.remedy:
            lines.append(f"{'':<7}  {'':<{width}}  -> {visible_line(diagnosis.remedy)}")
    levels = Counter(diagnosis.level for diagnosis in diagnoses)
    if levels["problem"]:
        end = "an experiment would be refused or would fail here"
    else:
        end = "experiments can run here"
    counts = f"{counted(levels['problem'], 'problem')}, {counted(levels['warning'], 'warning')}"
    checks = counted(levels["ok"], "check")
    return "\n".join((*lines, f"{checks} passed, {counts}: {end}"))
