"""The settings of an experiment, and of one of its runs, as TOML that `launch` reads. Pure, except `versions`."""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from esper_ab.contracts.code_state import written_code
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.run_files import config_of
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.plan.plan import Plan
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.settings.kind import SettingsKind, settings_of
from esper_ab.settings.schema import EXPERIMENT_FIELDS, GROUP_FIELDS, Field
from esper_ab.settings.settings_file import settings_sha256

_PACKAGES = ("esper-ab", "torch", "numpy", "scipy", "msgspec", "pyzmq", "duckdb", "gymnasium")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def versions() -> dict[str, str]:
    """Return installed versions of packages that results may depend on; packages that are not installed are omitted."""
    installed_versions = {}
    for package in _PACKAGES:
        try:
            installed_versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed_versions


def experiment_toml(plan: Plan, machine: Machine, author_remarks: dict[str, Any] | None = None) -> str:
    """Return the resolved settings in the form that `launch` reads, then the [record] table, which `launch` skips.

    [record] has facts about this launch, and the author's remarks from `author_remarks`.
    """
    tree = settings_tree(plan.experiment)
    used_devices = {device for lane in plan.lanes for device in lane.devices}
    devices = [device for device in machine.devices if device.name in used_devices]
    tree["record"] = {
        "settings": tree_sha256(tree),
        "digest": plan.digest,
        "versions": versions() | {"torch": machine.torch_version, "cuda": machine.cuda_build},
        "devices": {device.name: f"{device.title} {device.uuid}".strip() for device in devices},
        "kernel_build": plan.experiment.arithmetic.kernel_build,
        "user_rewards": {reward.reference: reward.sha256 for reward in machine.user_rewards},
    }
    if (facts := machine.trainer) is not None:
        tree["record"]["trainer"] = {
            "sha256": facts.sha256,
            "repeats": facts.repeats,
            "resumption": facts.resumption,
            "files": list(facts.files),
        }
    if author_remarks:
        tree["record"]["about"] = author_remarks
    return "\n".join(toml_lines(tree)) + "\n"


def run_toml(plan: Plan, spec: RunSpec) -> str:
    """Return the resolved settings of one run in the form that `launch` reads, then the [record] table.

    Settings about comparisons keep their defaults, because one run has no comparison. The seeds end with the run's own
    seed. `launch` needs a second group, which the command in the first line adds. It then trains the run again, and the
    records are the same on the same kind of device.
    """
    ref = spec.ref
    states = plan.experiment.states_of_code
    kept_folder = plan.experiment.code_kept
    experiment = msgspec.structs.replace(
        plan.experiment,
        code=written_code({ref.group_id: states[ref.group_id]} if states else {}),
        code_kept=posixpath.relpath(kept_folder, posixpath.dirname(config_of(ref))) if kept_folder else "",
        groups=tuple(group for group in plan.experiment.groups if group.name == ref.group_id),
        seeds=ref.replicate + 1,
        looks=(),
        control="",
        untested=(),
        open_ended=False,
        futility=0.0,
        claim="difference",
        guardrails=(),
        variances="own",
        shape="same",
    )
    tree = settings_tree(experiment)
    tree["record"] = {
        "settings": tree_sha256(tree),
        "run": ref.name,
        "replicate": ref.replicate,
        "device": ref.device,
        "env_devices": list(spec.env_devices),
        "experiment_digest": plan.digest,
        "policy_file": spec.policy_file,
        "log_file": spec.log_file,
    }
    flags = _second_group_flags(spec)
    if states:
        flags += _code_flags(states[ref.group_id], flags)
    command = shell_command("launch", config_of(ref), *flags, "--name", "again")
    return f"# Run {ref.name}. To train it again: {command}\n" + "\n".join(toml_lines(tree)) + "\n"


def _second_group_flags(spec: RunSpec) -> tuple[str, ...]:
    """Return arguments that add a second group: a cheap controller or, for a trainer, a copy of the run's group."""
    name = spec.ref.group_id
    if spec.trainer is None:
        baselines = settings_of(spec.task).baselines
        other_group = next((baseline for baseline in baselines if baseline != name), f"again={baselines[0]}")
        return "--groups", f"{name},{other_group}"
    arguments = ("--groups", f"{name},beside")
    settings = ",".join(f"trainer.{key}={json.dumps(value)}" for key, value in spec.settings.trainer.items())
    if not settings:
        return arguments
    return *arguments, "--group", f"beside:{settings}"


def _code_flags(state: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Return arguments that give the groups in `flags` the same state of the code."""
    groups = flags[1].split(",")
    return tuple(word for group in groups for word in ("--code", f"{group}={state}"))


def settings_tree(experiment: ResolvedExperiment) -> dict[str, Any]:
    """Return the settings that the task's kind reads, as nested tables that `read_toml` accepts."""
    tree: dict[str, Any] = msgspec.to_builtins(experiment)
    del tree["arithmetic"]["kernel_build"]  # detected, not requested
    groups = tree.pop("groups")
    if experiment.code:
        tree["code"] = experiment.states_of_code
    kind = settings_of(experiment.task)
    _leave_out_unread(tree, EXPERIMENT_FIELDS, kind)
    tree["groups"] = [group["name"] for group in groups]
    tree["group"] = {group["name"]: group["settings"] for group in groups}
    for table in tree["group"].values():
        _leave_out_unread(table, GROUP_FIELDS, kind)
    return tree


def _leave_out_unread(table: dict[str, Any], fields: Mapping[str, Field], kind: SettingsKind, prefix: str = "") -> None:
    """Delete the settings that the kind does not read, and those that older versions lack, unless they are given."""
    for key in list(table):
        if (field := fields.get(f"{prefix}{key}")) is None:  # a section
            _leave_out_unread(table[key], fields, kind, f"{prefix}{key}.")
            if not table[key]:
                del table[key]
        elif not kind.reads(field) or (field.spec.later and table[key] == field.default):
            del table[key]


def tree_sha256(tree: dict[str, Any]) -> str:
    """Return the hash of the settings after a round trip through TOML, because TOML drops empty tables."""
    return settings_sha256(tomllib.loads("\n".join(toml_lines(tree))))


def toml_lines(tree: dict[str, Any], path_above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield TOML lines: plain values first, then a table for each dict that has plain values."""
    for key, value in tree.items():
        if not isinstance(value, dict):
            yield f"{_key(key)} = {json.dumps(value, ensure_ascii=False)}"  # JSON of these values is valid TOML
    for key, value in tree.items():
        if isinstance(value, dict):
            path = (*path_above, key)
            if any(not isinstance(inner_value, dict) for inner_value in value.values()):
                yield f"\n[{'.'.join(_key(part) for part in path)}]"
            yield from toml_lines(value, path)


def _key(name: str) -> str:
    if _BARE_KEY.fullmatch(name):
        return name
    return json.dumps(name, ensure_ascii=False)
