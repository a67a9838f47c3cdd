"""The version stands where a release sets it: in the package, the citation, the changelog and the action's examples."""

import re
from datetime import date
from pathlib import Path

import pytest

from esper_ab import __version__

ROOT = Path(__file__).parents[2]


def test_the_newest_release_in_the_changelog_is_the_version_of_the_package():
    heading = re.search(r"^## \[(\d[^]]*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading is not None
    version, day = heading.groups()
    assert version == __version__
    assert date.fromisoformat(day)


def test_the_citation_names_the_version_of_the_package():
    assert f"version: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize(
    "path", ["docs/gate.md", *(str(path.relative_to(ROOT)) for path in (ROOT / "docs/examples/gate").glob("*.yml"))]
)
def test_examples_of_the_action_use_the_version_of_the_package(path):
    assert {*re.findall(r"/esper_ab@(\S+)", (ROOT / path).read_text())} == {f"v{__version__}"}
