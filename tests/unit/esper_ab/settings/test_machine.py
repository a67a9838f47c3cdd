"""--kernel: what auto and native mean on which machine, what is refused there, and that it is the plan's arithmetic."""

from __future__ import annotations

import msgspec
import pytest
from support.asking import TASK, asked, experiment, group, machine, planned, toml

from esper_ab.contracts.children import Kernel, Machine
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.settings import DEFAULT_BLUEPRINTS, Arithmetic, GrowthSettings
from esper_ab.design.calibration_file import circumstances_of
from esper_ab.settings.experiment import AskedArithmetic, AskedExperiment
from esper_ab.settings.kinds import kind_of
from esper_ab.settings.machine import check_kernel, lacking_kernel
from esper_ab.settings.request import read_flags
from esper_ab.settings.resolve import resolve

WIDE = Kernel(name="native-avx512", build="g++ 12; -O3 -DLANES=16; sources abc")
NARROW = Kernel(name="native-avx2", build="g++ 12; -O3 -DLANES=8; sources abc")
UNBUILT = Kernel(name="native-avx512", problem="it has not been built", remedy="build it")


def having(*kernels: Kernel, gpus: int = 0, blueprints: tuple[str, ...] = DEFAULT_BLUEPRINTS) -> Machine:
    return machine(gpus=gpus, kernels=kernels, native_blueprints=blueprints)


def wanting(kernel: str, **growth: object) -> AskedExperiment:
    groups = (group("a"), group("b", growth=GrowthSettings(**growth)))  # type: ignore[arg-type]
    return experiment(groups=groups, arithmetic=AskedArithmetic(kernel=kernel))  # type: ignore[arg-type]


def found(want: AskedExperiment, there: Machine) -> Arithmetic:
    return resolve(want, there, "x", 16).arithmetic


@pytest.mark.parametrize(("there", "kernel", "hosts"), [
    (having(WIDE, NARROW), "native-avx512", "native-avx512"),
    (having(NARROW), "native-avx2", "native-avx2"),
    (having(UNBUILT, NARROW), "native-avx2", "native-avx2"),
    (having(UNBUILT), "torch", "torch"),
    (having(), "torch", "torch"),
    (having(UNBUILT, gpus=2), "torch", "torch"),
    (having(WIDE, gpus=2), "native-avx512", "torch"),
    (having(WIDE, blueprints=DEFAULT_BLUEPRINTS[1:]), "native-avx512", "torch"),
])  # fmt: skip
def test_auto_is_the_widest_kernel_and_torch_trains_the_hosts_that_it_cannot(
    there: Machine, kernel: str, hosts: str
) -> None:
    arithmetic = found(wanting("auto"), there)
    assert (arithmetic.kernel, arithmetic.host_kernel) == (kernel, hosts)
    assert arithmetic.kernel_build == next((k.build for k in there.kernels if k.name == kernel), "")
    assert found(wanting("torch"), there) == Arithmetic()


def test_one_group_in_half_precision_is_enough_for_torch_to_train_all_hosts() -> None:
    assert found(wanting("auto", amp="bf16"), having(WIDE)).host_kernel == "torch"
    all_native = having(WIDE, blueprints=DEFAULT_BLUEPRINTS)
    assert found(wanting("auto", blueprints=("norm",)), all_native).host_kernel == WIDE.name


def test_torch_can_train_the_hosts_of_policies_that_the_kernel_computes() -> None:
    """As the file of an experiment on GPUs asks, which is to be the same experiment again."""
    arithmetic = AskedArithmetic(kernel="native-avx512", hosts="torch")
    asks = experiment(groups=(group("a"), group("b")), arithmetic=arithmetic)
    for there in (having(WIDE), having(WIDE, gpus=2)):
        arithmetic = found(asks, there)
        assert (arithmetic.kernel, arithmetic.host_kernel) == ("native-avx512", "torch")


@pytest.mark.parametrize(("asks", "there", "kernel"), [
    ("auto", having(WIDE, NARROW), "native-avx512"), ("auto", having(UNBUILT), "torch"),
    ("native-avx2", having(WIDE, NARROW), "native-avx2"), ("torch", having(WIDE), "torch"),
])  # fmt: skip
def test_the_kernel_computes_policies_of_gymnasium_s_tasks(asks: str, there: Machine, kernel: str) -> None:
    cartpole = msgspec.structs.replace(TASK, name="gym:CartPole-v1", kind="gymnasium", slots=())
    there = msgspec.structs.replace(there, tasks=(cartpole,))
    want = asked("env", "random", task=cartpole.name, margin=5.0, sets=(f"arithmetic.kernel={asks}",))
    arithmetic = found(want, there)
    assert (arithmetic.kernel, arithmetic.hosts) == (kernel, "kernel")
    assert arithmetic.kernel_build == next((k.build for k in there.kernels if k.name == kernel), "")


def test_a_width_can_be_asked_for_by_name() -> None:
    assert found(wanting("native"), having(WIDE, NARROW)).kernel == WIDE.name
    assert found(wanting("native-avx2"), having(WIDE, NARROW)) == Arithmetic(
        kernel="native-avx2", kernel_build=NARROW.build
    )


def test_the_plan_says_what_it_came_to_and_what_would_help() -> None:
    def notes(want: AskedExperiment, there: Machine) -> tuple[str, ...]:
        return kind_of(want.task).remarks(want, resolve(want, there, "x", 16), there)

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
    with pytest.raises(UsageError, match="--kernel"):
        asked("shaped", "wait", **read_flags({"kernel": "fast"}))
