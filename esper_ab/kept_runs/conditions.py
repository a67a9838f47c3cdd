"""The conditions under which the runs of a group are trained, beside what was asked for: machine and versions."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from importlib.metadata import distributions

from esper_ab.contracts.installed_code import sources
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.package_versions import sha256_of_versions
from esper_ab.contracts.trainer import is_command
from esper_ab.health.processor import name_of_processor
from esper_ab.plan.plan import Plan

PACKAGES = "packages"
_UNKNOWN = ""
_SHOWN_CHARS = 16


def conditions_of(plan: Plan, machine: Machine, group: str) -> dict[str, str]:
    """Return the conditions by name; that of packages is "" if it is not known which ones a command uses."""
    titles = sorted({title for lane in plan.lanes for title in lane.titles if title})
    conditions = {
        "esper_ab": sources(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": name_of_processor(),
        "devices": ", ".join(titles),
        "CUDA": machine.cuda_build,
        PACKAGES: _packages(plan, group),
    }
    return {name: value for name, value in conditions.items() if value or name == PACKAGES}


def _packages(plan: Plan, group: str) -> str:
    """Return a hash of the versions of Python and of all packages that the runs of a group can import."""
    facts = plan.trainer
    if facts is not None and group in facts.states:
        return facts.states[group].packages_sha256[:_SHOWN_CHARS]
    if is_command(plan.experiment.trainer) and plan.experiment.trainer:
        return _UNKNOWN
    return _sha256_of_installed()[:_SHOWN_CHARS]


@functools.cache
def _sha256_of_installed() -> str:
    """Return a hash of the versions of Python and of all installed packages; once, because it reads hundreds of files.

    Packages that are installed while this process runs are not seen.
    """
    versions = dict[str, str]()
    for distribution in distributions():
        metadata = distribution.metadata  # parsed anew by each access
        if name := metadata["Name"]:
            versions[name] = metadata["Version"]
    return sha256_of_versions({**versions, "Python": platform.python_version()})


def differing(earlier_conditions: Mapping[str, str], conditions: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the conditions that are not as they were."""
    names = dict.fromkeys((*conditions, *earlier_conditions))
    return tuple(name for name in names if earlier_conditions.get(name, "") != conditions.get(name, ""))
