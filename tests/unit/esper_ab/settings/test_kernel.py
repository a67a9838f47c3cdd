"""--kernel and --amp: what they mean on which machine, what is refused there, and that they are the plan's."""

import msgspec
import pytest
from support.plans.requests import TASK, asked, by_name, experiment, group, machine, planned, toml

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import Kernel, Machine
from esper_ab.contracts.settings import DEFAULT_BLUEPRINTS, Arithmetic, GrowthSettings
from esper_ab.design.calibration_file import circumstances_of
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


def having(*kernels: Kernel, gpus: int = 0, blueprints: tuple[str, ...] = DEFAULT_BLUEPRINTS) -> Machine:
    return machine(gpus=gpus, kernels=kernels, native_blueprints=blueprints)


def wanting(kernel: str, hosts: str = "kernel", **growth: object) -> AskedExperiment:
    groups = (group("a"), group("b", growth=GrowthSettings(**growth)))  # type: ignore[arg-type]
    arithmetic = AskedArithmetic(kernel=kernel, hosts=hosts)  # type: ignore[arg-type]
    return experiment(groups=groups, arithmetic=arithmetic)


def found(want: AskedExperiment, there: Machine) -> Arithmetic:
    return resolve(want, there, "x", 16).arithmetic


@pytest.mark.parametrize(
    ("want", "there", "kernel", "hosts"),
    [
        (wanting("torch"), having(WIDE), "torch", "torch"),
        (wanting("native"), having(WIDE, NARROW), "native-avx512", "native-avx512"),
        (wanting("native-avx2"), having(WIDE, NARROW), "native-avx2", "native-avx2"),
        (wanting("auto"), having(WIDE, NARROW), "native-avx512", "native-avx512"),
        (wanting("auto"), having(NARROW), "native-avx2", "native-avx2"),
        (wanting("auto"), having(UNBUILT, NARROW), "native-avx2", "native-avx2"),
        (wanting("auto"), having(UNBUILT), "torch", "torch"),
        (wanting("auto"), having(), "torch", "torch"),
        (wanting("auto"), having(UNBUILT, gpus=2), "torch", "torch"),
        # torch trains the hosts that the kernel cannot, of one group or of all
        (wanting("auto"), having(WIDE, gpus=2), "native-avx512", "torch"),
        (wanting("auto"), having(WIDE, blueprints=DEFAULT_BLUEPRINTS[1:]), "native-avx512", "torch"),
        (wanting("auto", amp="bf16"), having(WIDE), "native-avx512", "torch"),
        (wanting("auto", blueprints=("norm",)), having(WIDE), "native-avx512", "native-avx512"),
        # as the file of an experiment on GPUs asks, which is to be the same experiment again
        (wanting("native-avx512", "torch"), having(WIDE), "native-avx512", "torch"),
        (wanting("native-avx512", "torch"), having(WIDE, gpus=2), "native-avx512", "torch"),
    ],
)
def test_a_kernel_computes_the_policies_and_trains_the_hosts_that_it_can(
    want: AskedExperiment, there: Machine, kernel: str, hosts: str
) -> None:
    arithmetic = found(want, there)
    assert (arithmetic.kernel, arithmetic.host_kernel) == (kernel, hosts)
    assert arithmetic.kernel_build == next((k.build for k in there.kernels if k.name == kernel), "")
    assert kernel != "torch" or arithmetic == Arithmetic()


@pytest.mark.parametrize(
    ("asks", "there", "kernel"),
    [
        ("auto", having(WIDE, NARROW), "native-avx512"),
        ("auto", having(UNBUILT), "torch"),
        ("native-avx2", having(WIDE, NARROW), "native-avx2"),
        ("torch", having(WIDE), "torch"),
    ],
)
def test_the_kernel_computes_policies_of_gymnasium_s_tasks(asks: str, there: Machine, kernel: str) -> None:
    cartpole = msgspec.structs.replace(TASK, name="gym:CartPole-v1", kind="gymnasium", slots=())
    there = msgspec.structs.replace(there, tasks=(cartpole,))
    want = asked("env", "random", task=cartpole.name, margin=5.0, sets=(f"arithmetic.kernel={asks}",))
    arithmetic = found(want, there)
    assert (arithmetic.kernel, arithmetic.hosts) == (kernel, "kernel")
    assert arithmetic.kernel_build == next((k.build for k in there.kernels if k.name == kernel), "")


def test_the_plan_says_what_it_came_to_and_what_would_help() -> None:
    def notes(want: AskedExperiment, there: Machine) -> tuple[str, ...]:
        return settings_of(want.task).remarks(want, resolve(want, there, "x", 16), there)

    assert notes(wanting("auto"), having(WIDE)) == ("--kernel auto: native-avx512 (built by g++ 12).",)
    assert notes(wanting("auto"), having(UNBUILT)) == ("--kernel auto: torch (it has not been built; build it).",)
    assert notes(wanting("torch"), having(UNBUILT)) == ()
    (on_gpus,) = notes(wanting("auto"), having(WIDE, gpus=2))
    assert on_gpus.startswith(
        "--kernel auto: native-avx512 (built by g++ 12); hosts: torch (the kernel trains hosts only on the CPU"
    )
    assert lacking_kernel(having(UNBUILT)) == (UNBUILT.problem, UNBUILT.remedy)
    assert lacking_kernel(having(UNBUILT, NARROW)) == ("", "")


def test_width_compiler_flags_and_sources_make_another_plan() -> None:
    """Two arithmetics are never compared: not by digest, not across directories, not against a calibration."""
    changes = (("", ""), ("12", "13"), ("-O3", "-O2"), ("abc", "abd"))
    builds = [WIDE.build.replace(*change) for change in changes]
    there = [having(msgspec.structs.replace(WIDE, build=build)) for build in builds]
    plans = [planned(wanting("auto"), one) for one in (*there, having(NARROW), having())]
    assert len({plan.digest for plan in plans}) == len(plans)
    assert len({circumstances_of(plan.experiment)["arithmetic"] for plan in plans}) == len(plans)
    assert {spec.arithmetic for block in plans[0].blocks for spec in block.runs} == {plans[0].experiment.arithmetic}


def test_what_is_left_is_trained_by_the_same_build_or_not_at_all() -> None:
    plan = found(wanting("auto"), having(WIDE, NARROW))
    check_kernel(plan, having(WIDE, NARROW))
    for there, said in (
        (having(NARROW), "cannot run this kernel, only native-avx2"),
        (having(UNBUILT, NARROW), "it has not been built; build it"),
        (having(msgspec.structs.replace(WIDE, build="clang")), "here (clang) differs from that of the plan"),
    ):
        with pytest.raises(UsageError, match="native-avx512") as refused:
            check_kernel(plan, there)
        assert said in str(refused.value)
    check_kernel(Arithmetic(), having())


def test_flag_file_and_key_say_the_same(tmp_path) -> None:
    by_flag = asked("shaped", "wait", **read_flags({"kernel": "native"}))
    by_file = asked("shaped", "wait", toml=toml(tmp_path, '[arithmetic]\nkernel = "native"\n'))
    by_key = asked("shaped", "wait", sets=("arithmetic.kernel=native",))
    assert by_flag == by_file == by_key
    assert by_flag.arithmetic.kernel == "native"
    assert asked("shaped", "wait").arithmetic.kernel == "auto"


# --- precision -----------------------------------------------------------------------------------------------------


def gpus(*capabilities: str) -> Machine:
    there = machine(gpus=len(capabilities))
    cards = [msgspec.structs.replace(d, capability=c) for d, c in zip(there.devices, capabilities, strict=False)]
    return msgspec.structs.replace(there, devices=(*cards, *there.devices[len(cards) :]))


def with_amps(*amps: str) -> AskedExperiment:
    groups = tuple(group(f"g{i}", growth=GrowthSettings(amp=amp)) for i, amp in enumerate(amps))  # type: ignore[arg-type]
    return experiment(groups=groups)


def precision_on(there: Machine, *amps: str) -> tuple[list[str], list[str]]:
    """What the groups come to, and the notes about it."""
    want = with_amps(*amps)
    plan = resolve(want, there, "x", 16)
    return [one.settings.growth.amp for one in plan.groups], list(precision_notes(want, plan, there))


@pytest.mark.parametrize("there", [machine(cpu_bf16="avx512_bf16"), gpus("9.0", "8.0"), gpus("9.0", "7.5")])
def test_auto_is_float32_until_a_gain_was_measured_and_says_so_once(there: Machine) -> None:
    assert precision_on(there, "auto", "auto")[0] == ["off", "off"]
    amps, (note,) = precision_on(there, "auto", "fp16" if there.names("cuda") else "bf16")
    assert amps[0] == "off"
    assert note.startswith("--amp auto: off (")
    assert precision_on(there, "off", "off")[1] == []


def test_a_cpu_without_instructions_for_it_is_a_note() -> None:
    _, (note,) = precision_on(machine(), "bf16", "off")
    assert note.startswith("g0: this CPU has no bf16 instructions")


def test_float16_is_for_gpus_without_bf16_and_on_a_cpu_it_is_noted_as_slow() -> None:
    assert precision_on(gpus("7.5"), "fp16", "off") == (["fp16", "off"], [])
    with pytest.raises(UsageError, match=r"bf16 needs compute capability 8\.0, but cuda:0 has 7\.5.*fp16 or off"):
        precision_on(gpus("7.5"), "bf16")
    amps, (note,) = precision_on(machine(cpu_bf16="avx512_bf16"), "fp16", "bf16")
    assert amps == ["fp16", "bf16"]
    assert note.startswith("g0: growth.amp=fp16 is meant for GPUs")


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
