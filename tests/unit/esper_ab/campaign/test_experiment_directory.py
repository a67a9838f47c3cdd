"""The directory of an experiment is new, has a valid name, and contains the whole plan."""

from pathlib import Path

import pytest
from support.plans import requests

from esper_ab.campaign.experiment_directory import claim_new, make_experiment_directory
from esper_ab.contracts.errors import UsageError
from esper_ab.control.preflight import check_experiment_dir, expected_bytes

MACHINE = requests.machine()


def test_an_existing_experiment_directory_is_refused(tmp_path: Path) -> None:
    claim_new(tmp_path / "a" / "b")
    make_experiment_directory(
        tmp_path / "a" / "b", requests.planned(requests.asked("shaped", "wait"), MACHINE), MACHINE, "all of the plan"
    )
    assert (tmp_path / "a" / "b" / "plan.txt").read_text() == "all of the plan\n"
    assert (tmp_path / "a" / "b" / ".gitignore").read_text().endswith("\n*\n")
    with pytest.raises(UsageError, match="--name or --output-dir"):
        claim_new(tmp_path / "a" / "b")


def test_an_experiment_directory_needs_a_utf_8_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected text in UTF-8") as refusal:
        check_experiment_dir(tmp_path / "x\udcff", 0)
    assert str(refusal.value).isprintable()
    check_experiment_dir(tmp_path / "new" / "x", 0)
    assert expected_bytes(1000) > expected_bytes(10)
