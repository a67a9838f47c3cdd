"""--amp: what auto means on which machine, what is refused there, and that precision is a difference like any other."""

from __future__ import annotations

import msgspec
import pytest
from support.asking import asked, by_name, experiment, group, machine

from esper_ab.contracts.children import Machine
from esper_ab.contracts.settings import GrowthSettings
from esper_ab.settings.experiment import AskedExperiment, differences
from esper_ab.settings.machine import precision_notes
from esper_ab.settings.request import read_flags
from esper_ab.settings.resolve import resolve
from workers.commands.describe import cpu_bf16


def gpus(*capabilities: str) -> Machine:
    there = machine(gpus=len(capabilities))
    cards = [msgspec.structs.replace(d, capability=c) for d, c in zip(there.devices, capabilities, strict=False)]
    return msgspec.structs.replace(there, devices=(*cards, *there.devices[len(cards) :]))


def wanting(*amps: str, **changes: object) -> AskedExperiment:
    groups = tuple(group(f"g{i}", growth=GrowthSettings(amp=amp)) for i, amp in enumerate(amps))  # type: ignore[arg-type]
    return experiment(groups=groups, **changes)


def found(asked: AskedExperiment, there: Machine) -> list[str]:
    return [one.settings.growth.amp for one in resolve(asked, there, "x", 16).groups]


@pytest.mark.parametrize("there", [machine(cpu_bf16="avx512_bf16"), gpus("9.0", "8.0"), gpus("9.0", "7.5")])
def test_auto_is_float32_until_a_gain_was_measured_and_says_so_once(there: Machine) -> None:
    assert found(wanting("auto", "auto"), there) == ["off", "off"]
    want = wanting("auto", "fp16") if there.names("cuda") else wanting("auto", "bf16")
    assert found(want, there)[0] == "off"
    (note,) = precision_notes(want, resolve(want, there, "x", 16), there)
    assert note.startswith("--amp auto: off (")
    want = wanting("off", "off")
    assert not list(precision_notes(want, resolve(want, there, "x", 16), there))


def test_a_cpu_without_instructions_for_it_is_a_note() -> None:
    want = wanting("bf16", "off")
    (note,) = precision_notes(want, resolve(want, machine(), "x", 16), machine())
    assert note.startswith("g0: this CPU has no bf16 instructions")


def test_the_flag_is_for_all_groups_and_one_may_differ() -> None:
    flags = read_flags({"amp": "bf16"})
    assert {one.growth.amp for one in by_name(asked("shaped", "wait", **flags)).values()} == {"bf16"}
    groups = asked("shaped", "b=shaped", group=("b:growth.amp=off",), **flags)
    assert [(one.key, one.values) for one in differences(groups.groups)] == [
        ("growth.amp", {"shaped": "bf16", "b": "off"})
    ]


@pytest.mark.parametrize(("given", "deterministic"), [(None, True), (True, True), (False, False)])
def test_determinism_is_a_flag_with_a_no(given: bool | None, deterministic: bool) -> None:
    flags = read_flags({"deterministic": given})
    assert asked("shaped", "wait", **flags).arithmetic.deterministic == deterministic


def test_the_better_instructions_are_named() -> None:
    assert cpu_bf16(["sse", "avx512_bf16", "amx_bf16"]) == "amx_bf16"
    assert cpu_bf16(["avx512_bf16"]) == "avx512_bf16"
    assert cpu_bf16(["avx512f"]) == ""
