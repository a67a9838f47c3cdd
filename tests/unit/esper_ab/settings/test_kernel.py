"""--kernel and --amp: their meaning on each machine, refusals, and their effect on the plan."""

import msgspec
import pytest
from support.plans.requests import TASK, asked, by_name, experiment, group, machine, planned, toml

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Kernel, Machine
from esper_ab.contracts.settings import DEFAULT_BLUEPRINTS, Arithmetic, GrowthSettings
from esper_ab.settings.circumstances import circumstances_of
from esper_ab.settings.differences import differences
from esper_ab.settings.experiment import AskedArithmetic, AskedExperiment
from esper_ab.settings.flags import read_flags
from esper_ab.settings.kernel import check_kernel, lacking_kernel
from esper_ab.settings.kind import settings_of
from esper_ab.settings.precision import precision_notes
from esper_ab.settings.resolve import resolve
from workers.commands.describe import cpu_bf16

WIDE = Kernel(name="native-avx512", build="g++ 12; -O3 -DLANES=16; sources abc")
NARROW = Kernel(name="native-avx2", build="g++ 12; -O3 -DLANES=8; sources abc")
UNBUILT = Kernel(name="native-avx512", problem="it has not been built", remedy="build it")


def machine_with(*kernels: Kernel, gpus: int = 0, blueprints: tuple[str, ...] = DEFAULT_BLUEPRINTS) -> Machine:
    return machine(gpus=gpus, kernels=kernels, native_blueprints=blueprints)


def experiment_with(kernel: str, hosts: str = "kernel", **growth: object) -> AskedExperiment:
    groups = (group("a"), group("b", growth=GrowthSettings(**growth)))  # type: ignore[arg-type]
    arithmetic = AskedArithmetic(kernel=kernel, hosts=hosts)  # type: ignore[arg-type]
    return experiment(groups=groups, arithmetic=arithmetic)


def resolve_arithmetic(request: AskedExperiment, this_machine: Machine) -> Arithmetic:
    return resolve(request, this_machine, "x", 16).arithmetic


@pytest.mark.parametrize(
    ("asked_experiment", "this_machine", "kernel", "hosts"),
    [
        (experiment_with("torch"), machine_with(WIDE), "torch", "torch"),
        (experiment_with("native"), machine_with(WIDE, NARROW), "native-avx512", "native-avx512"),
        (experiment_with("native-avx2"), machine_with(WIDE, NARROW), "native-avx2", "native-avx2"),
        (experiment_with("auto"), machine_with(WIDE, NARROW), "native-avx512", "native-avx512"),
        (experiment_with("auto"), machine_with(NARROW), "native-avx2", "native-avx2"),
        (experiment_with("auto"), machine_with(UNBUILT, NARROW), "native-avx2", "native-avx2"),
        (experiment_with("auto"), machine_with(UNBUILT), "torch", "torch"),
        (experiment_with("auto"), machine_with(), "torch", "torch"),
        (experiment_with("auto"), machine_with(UNBUILT, gpus=2), "torch", "torch"),
        # torch trains the hosts that the kernel cannot train, of one group or of all
        (experiment_with("auto"), machine_with(WIDE, gpus=2), "native-avx512", "torch"),
        (experiment_with("auto"), machine_with(WIDE, blueprints=DEFAULT_BLUEPRINTS[1:]), "native-avx512", "torch"),
        (experiment_with("auto", amp="bf16"), machine_with(WIDE), "native-avx512", "torch"),
        (experiment_with("auto", blueprints=("norm",)), machine_with(WIDE), "native-avx512", "native-avx512"),
        # the settings in the file of an experiment on GPUs, which must plan the same experiment
        (experiment_with("native-avx512", "torch"), machine_with(WIDE), "native-avx512", "torch"),
        (experiment_with("native-avx512", "torch"), machine_with(WIDE, gpus=2), "native-avx512", "torch"),
    ],
)
def test_the_kernel_trains_only_hosts_that_it_supports(
    asked_experiment: AskedExperiment, this_machine: Machine, kernel: str, hosts: str
) -> None:
    arithmetic = resolve_arithmetic(asked_experiment, this_machine)
    assert (arithmetic.kernel, arithmetic.host_kernel) == (kernel, hosts)
    assert arithmetic.kernel_build == next((k.build for k in this_machine.kernels if k.name == kernel), "")
    assert kernel != "torch" or arithmetic == Arithmetic()


@pytest.mark.parametrize(
    ("kernel_setting", "this_machine", "kernel"),
    [
        ("auto", machine_with(WIDE, NARROW), "native-avx512"),
        ("auto", machine_with(UNBUILT), "torch"),
        ("native-avx2", machine_with(WIDE, NARROW), "native-avx2"),
        ("torch", machine_with(WIDE), "torch"),
    ],
)
def test_the_kernel_computes_policies_of_gymnasium_tasks(
    kernel_setting: str, this_machine: Machine, kernel: str
) -> None:
    cartpole = msgspec.structs.replace(TASK, name="gym:CartPole-v1", kind="gymnasium", slots=())
    this_machine = msgspec.structs.replace(this_machine, tasks=(cartpole,))
    request = asked("env", "random", task=cartpole.name, margin=5.0, sets=(f"arithmetic.kernel={kernel_setting}",))
    arithmetic = resolve_arithmetic(request, this_machine)
    assert (arithmetic.kernel, arithmetic.hosts) == (kernel, "kernel")
    assert arithmetic.kernel_build == next((k.build for k in this_machine.kernels if k.name == kernel), "")


def test_a_note_names_the_chosen_kernel() -> None:
    def notes(request: AskedExperiment, this_machine: Machine) -> tuple[str, ...]:
        return settings_of(request.task).remarks(request, resolve(request, this_machine, "x", 16), this_machine)

    assert notes(experiment_with("auto"), machine_with(WIDE)) == ("--kernel auto: native-avx512 (built by g++ 12).",)
    assert notes(experiment_with("auto"), machine_with(UNBUILT)) == (
        "--kernel auto: torch (it has not been built; build it).",
    )
    assert notes(experiment_with("torch"), machine_with(UNBUILT)) == ()
    (gpu_note,) = notes(experiment_with("auto"), machine_with(WIDE, gpus=2))
    assert gpu_note.startswith(
        "--kernel auto: native-avx512 (built by g++ 12); hosts: torch (the kernel trains hosts only on the CPU"
    )
    assert lacking_kernel(machine_with(UNBUILT)) == (UNBUILT.problem, UNBUILT.remedy)
    assert lacking_kernel(machine_with(UNBUILT, NARROW)) == ("", "")


def test_the_build_of_a_kernel_is_part_of_the_digest() -> None:
    """Plans of different arithmetic differ in digest and circumstances, so they are never compared."""
    changes = (("", ""), ("12", "13"), ("-O3", "-O2"), ("abc", "abd"))
    builds = [WIDE.build.replace(*change) for change in changes]
    machines = [machine_with(msgspec.structs.replace(WIDE, build=build)) for build in builds]
    plans = [
        planned(experiment_with("auto"), this_machine)
        for this_machine in (*machines, machine_with(NARROW), machine_with())
    ]
    assert len({plan.digest for plan in plans}) == len(plans)
    assert len({circumstances_of(plan.experiment)["arithmetic"] for plan in plans}) == len(plans)
    assert {spec.arithmetic for block in plans[0].blocks for spec in block.runs} == {plans[0].experiment.arithmetic}


def test_resuming_needs_the_same_build_of_the_kernel() -> None:
    plan = resolve_arithmetic(experiment_with("auto"), machine_with(WIDE, NARROW))
    check_kernel(plan, machine_with(WIDE, NARROW))
    for this_machine, reason in (
        (machine_with(NARROW), "cannot run this kernel, only native-avx2"),
        (machine_with(UNBUILT, NARROW), "it has not been built; build it"),
        (machine_with(msgspec.structs.replace(WIDE, build="clang")), "here (clang) differs from that of the plan"),
    ):
        with pytest.raises(UsageError, match="native-avx512") as refusal:
            check_kernel(plan, this_machine)
        assert reason in str(refusal.value)
    check_kernel(Arithmetic(), machine_with())


def test_a_kernel_can_be_set_by_flag_file_or_key(tmp_path) -> None:
    by_flag = asked("shaped", "wait", **read_flags({"kernel": "native"}))
    by_file = asked("shaped", "wait", toml=toml(tmp_path, '[arithmetic]\nkernel = "native"\n'))
    by_key = asked("shaped", "wait", sets=("arithmetic.kernel=native",))
    assert by_flag == by_file == by_key
    assert by_flag.arithmetic.kernel == "native"
    assert asked("shaped", "wait").arithmetic.kernel == "auto"


# --- precision -----------------------------------------------------------------------------------------------------


def gpus(*capabilities: str) -> Machine:
    gpu_machine = machine(gpus=len(capabilities))
    cards = [msgspec.structs.replace(d, capability=c) for d, c in zip(gpu_machine.devices, capabilities, strict=False)]
    return msgspec.structs.replace(gpu_machine, devices=(*cards, *gpu_machine.devices[len(cards) :]))


def with_amps(*amps: str) -> AskedExperiment:
    groups = tuple(group(f"g{i}", growth=GrowthSettings(amp=amp)) for i, amp in enumerate(amps))  # type: ignore[arg-type]
    return experiment(groups=groups)


def precision_on(this_machine: Machine, *amps: str) -> tuple[list[str], list[str]]:
    """Return the resolved precision of each group, and the notes about it."""
    request = with_amps(*amps)
    plan = resolve(request, this_machine, "x", 16)
    return [resolved_group.settings.growth.amp for resolved_group in plan.groups], list(
        precision_notes(request, plan, this_machine)
    )


@pytest.mark.parametrize("this_machine", [machine(cpu_bf16="avx512_bf16"), gpus("9.0", "8.0"), gpus("9.0", "7.5")])
def test_automatic_mixed_precision_is_off(this_machine: Machine) -> None:
    assert precision_on(this_machine, "auto", "auto")[0] == ["off", "off"]
    amps, (note,) = precision_on(this_machine, "auto", "fp16" if this_machine.names("cuda") else "bf16")
    assert amps[0] == "off"
    assert note.startswith("--amp auto: off (")
    assert precision_on(this_machine, "off", "off")[1] == []


def test_bf16_on_a_cpu_without_its_instructions_causes_a_note() -> None:
    _, (note,) = precision_on(machine(), "bf16", "off")
    assert note.startswith("g0: this CPU has no bf16 instructions")


def test_float16_on_a_cpu_causes_a_note() -> None:
    assert precision_on(gpus("7.5"), "fp16", "off") == (["fp16", "off"], [])
    with pytest.raises(UsageError, match=r"bf16 needs compute capability 8\.0, but cuda:0 has 7\.5.*fp16 or off"):
        precision_on(gpus("7.5"), "bf16")
    amps, (note,) = precision_on(machine(cpu_bf16="avx512_bf16"), "fp16", "bf16")
    assert amps == ["fp16", "bf16"]
    assert note.startswith("g0: growth.amp=fp16 is meant for GPUs")


def test_a_group_can_override_the_amp_flag() -> None:
    flags = read_flags({"amp": "bf16"})
    assert {settings.growth.amp for settings in by_name(asked("shaped", "wait", **flags)).values()} == {"bf16"}
    groups = asked("shaped", "b=shaped", group=("b:growth.amp=off",), **flags)
    assert [(difference.key, difference.values) for difference in differences(groups.groups)] == [
        ("growth.amp", {"shaped": "bf16", "b": "off"})
    ]


@pytest.mark.parametrize(("is_deterministic", "deterministic"), [(None, True), (True, True), (False, False)])
def test_the_deterministic_flag_can_be_negated(is_deterministic: bool | None, deterministic: bool) -> None:
    flags = read_flags({"deterministic": is_deterministic})
    assert asked("shaped", "wait", **flags).arithmetic.deterministic == deterministic


def test_the_best_bf16_instructions_of_a_cpu_are_named() -> None:
    assert cpu_bf16(["sse", "avx512_bf16", "amx_bf16"]) == "amx_bf16"
    assert cpu_bf16(["avx512_bf16"]) == "avx512_bf16"
    assert cpu_bf16(["avx512f"]) == ""
