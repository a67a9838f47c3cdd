"""The marks in documents between which scripts write."""

from __future__ import annotations

import pytest
from benchmarks.marks import between

PAGE = "a\n<!-- table -->\nold\n<!-- /table -->\nb\n"


def test_only_what_stands_between_the_marks_is_replaced():
    assert between(PAGE, "table", "new") == "a\n<!-- table -->\nnew\n<!-- /table -->\nb\n"


@pytest.mark.parametrize("page", ["a", "<!-- table -->", "<!-- /table --> <!-- table -->"])
def test_a_page_without_both_marks_in_order_is_refused(page):
    with pytest.raises(ValueError, match="no <!-- table -->"):
        between(page, "table", "new")
