"""The doctor lists each problem with its remedy, and counts the passed checks."""

import pytest

from esper_ab.commands.doctor import describe_diagnoses
from esper_ab.health.diagnosis import Diagnosis

WELL = Diagnosis(topic="disk", level="ok", what="300 GB free")
SLOW = Diagnosis(topic="driver", level="warning", what="is old", remedy="update it")
BROKEN = Diagnosis(topic="torch", level="problem", what="is not there", remedy="install it")


@pytest.mark.parametrize(
    ("diagnoses", "lines"),
    [
        ([WELL, WELL], ["2 checks passed, 0 problems, 0 warnings: experiments can run here"]),
        (
            [WELL, SLOW],
            [
                "warning  driver  is old",
                "                 -> update it",
                "1 check passed, 0 problems, 1 warning: experiments can run here",
            ],
        ),
        (
            [WELL, BROKEN],
            [
                "problem  torch  is not there",
                "                -> install it",
                "1 check passed, 1 problem, 0 warnings: an experiment would be refused or would fail here",
            ],
        ),
    ],
)
def test_the_doctor_lists_problems_and_warnings(diagnoses, lines):
    assert describe_diagnoses(diagnoses).splitlines() == lines
    whole = describe_diagnoses(diagnoses, in_full=True).splitlines()
    assert [line for line in whole if line in lines] == lines
    additional_lines = [line for line in whole if line not in lines]
    assert [line.split() for line in additional_lines] == [["ok", "disk", "300", "GB", "free"]] * diagnoses.count(WELL)
