"""Upper bounds on functions entered and on imports between rooms: at most 10 % above walks.toml."""

import tomllib

import pytest
from house import walks

pytestmark = pytest.mark.usefixtures("warm_children")
WALKS = {"launch": walks.launching, "judge": walks.judging, "episode": walks.training}
REACHED = tomllib.loads(walks.FILE.read_text(encoding="utf-8"))
SLACK = 1.10


@pytest.mark.parametrize("job", WALKS)
def test_a_job_enters_at_most_the_recorded_number_of_functions(job):
    assert len(WALKS[job]().entered) <= SLACK * REACHED["functions"][job]


@pytest.mark.parametrize(("job", "walk"), [("launch", walks.launching), ("file", walks.launching_a_file)])
def test_a_job_reads_each_file_once(job, walk):
    read_again = walk().read_again()
    assert len(read_again) <= SLACK * REACHED["read_again"][job], read_again


def test_imports_between_rooms_do_not_exceed_the_recorded_number():
    assert sum(map(len, walks.rooms().values())) <= SLACK * REACHED["imports"]["between rooms"]
