"""A new launcher or statistic needs one file: both are added to a copy of the packages and found by name."""

import json
import shutil
from pathlib import Path

import pytest
from house.sources import ROOT
from support.processes import children

LAUNCHER = """
from esper_ab.launchers._processes import ProcessLauncher


class ExtraLauncher(ProcessLauncher):
    name = "extra"


LAUNCHER = ExtraLauncher
"""
STATISTIC = """
from esper_ab.stats.statistic import Statistic

STATISTIC = Statistic[float](
    label="largest difference", kind="effect", place=99, compute=lambda a, b, _: float(max(a - b)),
    show=lambda result, context: f"{result:+.2f} points for {context.a}",
    caveats=lambda result, _: ["It is the largest."],
)
"""
SHOW = """
import json
from support.journals.ready_journals import planted_effect
from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.experiment import experiment_report
from esper_ab.report.text import render_text
from esper_ab.report.verdict_json import render_verdict

found = content(fold(planted_effect()))
print(json.dumps([render_text(experiment_report(found), in_full=True), json.loads(render_verdict(found))]))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    for package in ("esper_ab", "workers"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "esper_ab" / "launchers" / "extra.py").write_text(LAUNCHER)
    (folder / "esper_ab" / "stats" / "descriptive" / "largest.py").write_text(STATISTIC)
    return folder


def python(copy, *arguments):
    return children.python(*arguments, folder=copy, PYTHONPATH=f"{copy}:{children.TESTS}")


def test_a_launcher_file_is_found_by_its_name(copy):
    assert "'extra', 'inline', 'local'" in python(copy, "-m", "esper_ab.launch", "--launcher", "nobody").stderr
    statement = (
        "from esper_ab.campaign.launcher import make_launcher; from esper_ab.settings.launcher import AskedLauncher; "
        "print(type(make_launcher(AskedLauncher(launcher='extra'))).__name__)"
    )
    assert python(copy, "-c", statement).stdout == "ExtraLauncher\n"


def test_a_statistic_file_is_computed_shown_and_exported(copy):
    text, document = json.loads(python(copy, "-c", SHOW).stdout)  # stderr: matplotlib may say that it lists fonts
    (comparison,) = document["comparisons"]
    largest_difference = max(pair["a"] - pair["b"] for pair in comparison["pairs"])
    assert comparison["largest"] == largest_difference
    assert f"largest difference {largest_difference:+.2f} points for shaped" in " ".join(text.split())
    assert "It is the largest." in " ".join(text.split())
