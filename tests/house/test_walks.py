"""How far a reader walks may only fall: walks.toml. The aim is 140 functions, 30 files and 1,500 lines to plan a run,
each text read once, and 20 rooms with 100 arrows.

The numbers of today are in the file; `python -m house.walks --write`, with PYTHONPATH=tests, lowers them.
"""

import tomllib

import pytest
from house import limits, walks
from house.test_limits import skip_without_history

pytestmark = pytest.mark.usefixtures("warm_children")
WALKS = {"launch": walks.launching, "judge": walks.judging, "episode": walks.training}
LIMITS = tomllib.loads(walks.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("job", WALKS)
def test_a_walk_is_not_longer_than_its_limit(job):
    numbers = {unit: {job: number} for unit, number in WALKS[job]().numbers().items()}
    assert limits.above(numbers, LIMITS) == []


@pytest.mark.parametrize(("job", "walk"), [("launch", walks.launching), ("file", walks.launching_a_file)])
def test_a_text_is_read_once(job, walk):
    again = walk().read_again()
    assert len(again) <= LIMITS["read_again"][job], again


def test_rooms_and_arrows_are_no_more_than_their_limits():
    arrows = walks.rooms()
    numbers = {"rooms": len(arrows), "arrows": sum(map(len, arrows.values()))}
    assert limits.above({"house": numbers}, LIMITS) == []


def test_no_commit_raises_a_walk_without_its_reason():
    skip_without_history()
    assert limits.unexplained(limits.ROOT, str(walks.FILE.relative_to(limits.ROOT))) == []
