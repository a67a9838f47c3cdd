"""Names of a worker's GPUs, from torch and the environment. MIG has not been tested on a real GPU."""

import pytest

from esper_ab.contracts.gpu_names import gpu_names, is_beyond_one_instance

UUID = "0a1b2c3d-1111-2222-3333-444455556666"
OLDER = f"MIG-GPU-{UUID}/3/0"  # the name of an instance in drivers before 470


@pytest.mark.parametrize(
    ("uuids", "visible_variable", "names"),
    [
        (["a", "b"], None, ["GPU-a", "GPU-b"]),
        (["b"], "1", ["GPU-b"]),
        (["b"], "GPU-b", ["GPU-b"]),
        ([], f"MIG-{UUID}", []),
        (["of the instance, or of its GPU"], f"MIG-{UUID}", [f"MIG-{UUID}"]),
        ([UUID], OLDER, [OLDER]),
        ([UUID], f" MIG-{UUID} ", [f"MIG-{UUID}"]),
    ],
)
def test_gpus_are_named_by_uuid_or_mig_instance(
    uuids: list[str], visible_variable: str | None, names: list[str]
) -> None:
    assert gpu_names(uuids, visible_variable) == names


@pytest.mark.parametrize(
    ("visible_variable", "beyond"),
    [
        (None, False),
        ("", False),
        ("0,1", False),
        ("GPU-a,GPU-b", False),
        ("MIG-a", False),
        ("MIG-a,MIG-b", True),
        ("GPU-a,MIG-b", True),
        ("MIG-a, 0", True),
    ],
)
def test_a_mig_instance_beside_other_devices_is_detected(visible_variable: str | None, beyond: bool) -> None:
    assert is_beyond_one_instance(visible_variable) == beyond
