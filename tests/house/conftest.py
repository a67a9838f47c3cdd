"""What rules of the house share is given back when a file of them is done: it is hundreds of megabytes."""

import pytest
from house.sources import nodes


@pytest.fixture(scope="module", autouse=True)
def _no_trees_are_left():
    yield
    nodes.cache_clear()
