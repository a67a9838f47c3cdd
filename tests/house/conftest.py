"""Read the sources without garbage collections, and free the syntax trees after each file of house tests."""

import gc

import pytest
from house.sources import nodes


@pytest.fixture(scope="module", autouse=True)
def _no_trees_are_left():
    """Trees are hundreds of megabytes of objects, which a collection searches again and again.

    A collection may also let a thread that another test has left behind go on, and if that writes a traceback while
    `ast.parse` makes a tree, Python 3.11 raises SystemError.
    """
    gc.disable()
    yield
    nodes.cache_clear()
    gc.enable()
