"""Findings about cores, quotas and memory, from the files of other machines."""

import platform

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.machine import Kernel
from esper_ab.health import processor
from esper_ab.health.control_groups import MemoryLimit


@pytest.mark.parametrize(("content", "expected"), [("150000 100000\n", 1.5), ("max 100000\n", None)])
def test_the_cpu_quota_is_read_from_the_control_group(tmp_path, content, expected):
    (tmp_path / "cpu.max").write_text(content)
    assert processor.cpu_quota([tmp_path, tmp_path / "nowhere"]) == expected


def test_the_name_of_a_processor_has_family_and_model():
    text = "processor\t: 0\nmodel name\t: {}\ncpu family\t: {}\nmodel\t\t: {}\n\nprocessor\t: 1\nmodel name\t: Other\n"
    assert processor.name_of_processor(text.format("AMD EPYC", 25, 17)) == "AMD EPYC (family 25, model 17)"
    assert processor.name_of_processor(text.format("AMD EPYC", 26, 2)) == "AMD EPYC (family 26, model 2)"
    unnamed_processor = "processor\t: 0\nBogoMIPS\t: 50\n\n"
    assert processor.name_of_processor(unnamed_processor) in (platform.processor(), platform.machine())


def test_the_doctor_suggests_a_remedy_for_a_missing_kernel():
    missing_kernel = Kernel(name="native-avx2", problem="not built", remedy="build it")
    built = processor.kernel((Kernel(name="native-generic", build="g++ 12"), missing_kernel), "", "")
    assert (built.level, built.what) == ("ok", "native-generic, built by g++ 12")
    diagnosis_without_kernel = processor.kernel((missing_kernel,), missing_kernel.problem, missing_kernel.remedy)
    assert (diagnosis_without_kernel.level, diagnosis_without_kernel.remedy) == ("warning", "build it")
    assert diagnosis_without_kernel.what.endswith("not built")


def test_the_doctor_warns_of_a_kernel_narrower_than_the_processor_can_run():
    missing_kernel = Kernel(name="native-avx512", problem="not built", remedy="build it")
    diagnosis = processor.kernel((missing_kernel, Kernel(name="native-generic", build="g++ 12")), "", "")
    assert (diagnosis.level, diagnosis.remedy) == ("warning", "build it")
    words = "native-generic is used, because this processor's widest, native-avx512, cannot be: not built"
    assert diagnosis.what == words


def test_the_strictest_control_group_limits_cpu_quota_and_memory(tmp_path):
    inner_group = tmp_path / "a"
    inner_group.mkdir()
    (inner_group / "cpu.max").write_text("400000 100000")
    (tmp_path / "cpu.max").write_text("200000 100000")
    assert processor.cpu_quota([inner_group, tmp_path]) == 2.0
    limit = MemoryLimit("memory.max of control group x", 8 << 30, 7 << 30)
    diagnosis = processor.memory(processor.smaller_room(48 << 30, limit))
    assert diagnosis.level == "warning"
    assert "1.0 GiB available under memory.max of control group x: 7.0 of 8.0 GiB are in use" in diagnosis.what
    wide_room = processor.smaller_room(48 << 30, limit._replace(used=0, limit=1 << 50))
    assert processor.memory(wide_room).what == "48.0 GiB available"
    assert processor.smaller_room(48 << 30, None).by == ""
    assert processor.room().bytes > 0


@given(st.integers(1, 512), st.integers(1, 512))
def test_the_doctor_warns_if_affinity_or_quota_withhold_cores(usable_cores, total):
    assert (processor.cores(min(usable_cores, total), total).level == "warning") == (usable_cores < total)
    assert (processor.quota(float(usable_cores), total).level == "warning") == (usable_cores < total)
