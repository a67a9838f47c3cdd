"""Free the cached syntax trees, hundreds of megabytes, after each file of house tests."""

import pytest
from house.sources import nodes


@pytest.fixture(scope="module", autouse=True)
def _no_trees_are_left():
    yield
    nodes.cache_clear()
