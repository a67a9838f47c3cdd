"""Which command an interrupted calibration names."""

from __future__ import annotations

from pathlib import Path

import pytest

from esper_ab.contracts.errors import Interrupted
from esper_ab.execution.calibration import naming
from esper_ab.launchers.inline import InlineLauncher

AGAIN = "esper-ab calibrate --runs 4 --name x"


@pytest.mark.parametrize("folder", ["experiments/x", "experiments/x/determinism"])
@pytest.mark.parametrize("flags", [(), ("--launcher", "inline")])
def test_an_error_names_the_command_that_goes_on_with_all_of_it(folder, flags):
    launcher = InlineLauncher()
    launcher.flags = flags
    with pytest.raises(Interrupted) as caught, naming(AGAIN, Path(folder), launcher):
        raise Interrupted(" ".join(("stopped\nto go on: esper-ab resume", folder, *flags)))
    assert str(caught.value) == f"stopped\nto go on: {AGAIN}"
