"""The launcher for Slurm where there is none; with one it is tested in tests/cluster."""

from __future__ import annotations

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.launchers.slurm import SlurmLauncher

ALLOCATION = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST")


@pytest.mark.parametrize("missing", ALLOCATION)
def test_what_slurm_says_of_an_allocation_is_named_where_it_is_missing(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where somebody has exported the number of a job by hand."""
    for variable in ALLOCATION:
        monkeypatch.setenv(variable, "1")
    monkeypatch.delenv(missing)
    with pytest.raises(UsageError, match=rf"in the allocation that it runs in, and {missing} is not set: `esper-ab"):
        SlurmLauncher()
