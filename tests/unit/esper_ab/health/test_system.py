"""Limits of this process."""

import pytest

from esper_ab.health import system

LEAST_BYTES = 3 << 29


@pytest.mark.parametrize(
    ("soft_limits", "levels"),
    [
        ((20000, 4096, -1), ["ok", "ok"]),
        ((256, 64, LEAST_BYTES), ["warning", "warning"]),
        ((-1, -1, LEAST_BYTES - 1), ["ok", "ok", "problem"]),
    ],
)
def test_low_process_limits_are_reported(soft_limits, levels):
    assert [diagnosis.level for diagnosis in system.limits(*soft_limits)] == levels
