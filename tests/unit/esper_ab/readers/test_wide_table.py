"""Files with a row per seed and a column per group."""

import pandas as pd
import pytest

from esper_ab.contracts.errors import Unanswered, UsageError
from esper_ab.readers.csv_file import read_csv

WIDE = "seed,old,new,note\n0,1,2,\n1,3,,x\n"


def _read(path, text, groups=(), names=None):
    path.write_text(text)
    return [(row.group, row.replicate, row.value, row.row) for row in read_csv(path, names, groups).rows]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "wide.csv"


def test_the_named_columns_of_a_wide_table_are_groups(file):
    rows = [("old", "0", 1.0, 2), ("new", "0", 2.0, 2), ("old", "1", 3.0, 3), ("new", "1", None, 3)]
    assert _read(file, WIDE, ("old", "new")) == rows
    assert _read(file, WIDE.replace("seed", "rng"), ("old", "new"), {"seed": "rng"}) == rows


def test_each_row_of_a_wide_table_without_seeds_is_a_pair(file):
    text = "old,new\n1,2\n3,4\n"
    assert _read(file, text, ("old", "new")) == [
        ("old", "2", 1.0, 2),
        ("new", "2", 2.0, 2),
        ("old", "3", 3.0, 3),
        ("new", "3", 4.0, 3),
    ]


def test_the_user_is_asked_about_columns_that_may_be_groups(file):
    """They may as well be two measures of one run."""
    with pytest.raises(Unanswered, match="if each row is a seed, and old and new are the groups: --groups old,new"):
        _read(file, "seed,old,new\n0,1,2\n1,3,\n")
    with pytest.raises(UsageError, match="no column 'group' or 'outcome'; its columns are seed, score"):
        _read(file, "seed,score,note\n0,1,x\n")


@pytest.mark.parametrize(
    "text",
    [
        WIDE,
        "question,old,new\n0,1,2\n0,3,3\n",
        "item,old,new\n0,1,2\n0,3,3\n",
        "doc_id,question,old,new\n0,a,1,2\n1,b,3,3\n",
        "seed,epoch,correct\n0,7,1\n1,9,0\n",
        "seed,attempt,correct\n0,1,1\n1,2,0\n2,3,0\n",
        "seed,attempt,correct\n0,0,1\n1,1,0\n2,2,0\n3,0,0\n4,1,1\n5,2,1\n",
    ],
    ids=[
        "text",
        "repeated questions",
        "repeated items",
        "two columns of items",
        "epochs",
        "a count",
        "a count again and again",
    ],
)
def test_numbers_beside_text_repeated_items_or_a_count_are_not_suggested_as_groups(file, text):
    with pytest.raises(UsageError, match="say which with --columns group=NAME,outcome=NAME") as refused:
        _read(file, text)
    assert not isinstance(refused.value, Unanswered)


@pytest.mark.parametrize(
    ("header", "row_word"),
    [
        ("question,old,new", "question"),
        ("doc_id,old,new", "item"),
        ("item,old,new", "item"),
        ("Prompts,old,new", "prompt"),
    ],
)
@pytest.mark.parametrize("cells", [("0", "1"), ("Why?", "How?")], ids=["numbers", "texts"])
def test_columns_beside_a_row_per_item_may_be_groups(file, header, row_word, cells):
    expected = f"if each row is a {row_word}, and old and new are the groups: --groups old,new"
    with pytest.raises(Unanswered, match=expected.replace("a item", "an item")):
        _read(file, f"{header}\n{cells[0]},1,0\n{cells[1]},0,0\n")


def test_a_row_per_question_is_read_with_its_columns_as_groups(file):
    file.write_text("question,old,new\nq1,1,0\nq2,0,1\n")
    table = read_csv(file, {}, ("old", "new")).table
    assert (table.groups, table.items, table.score.tolist()) == (("old", "new"), ("q1", "q2"), [1.0, 0.0, 0.0, 1.0])


def test_columns_of_zeros_and_ones_may_be_groups(file):
    with pytest.raises(Unanswered, match="old and new are the groups"):
        _read(file, "seed,old,new\n0,0,1\n1,1,0\n2,0,1\n3,1,0\n")


def test_columns_of_a_wandb_chart_are_not_suggested_as_groups(file):
    """Their rows are steps, so none of the columns is offered as a group."""
    columns = [f'"{run} - acc{end}"' for run in ("old-0", "new-0") for end in ("", "__MIN", "__MAX")]
    with pytest.raises(UsageError, match=r"a column per run \(old-0 - acc and 1 more\) and a row per step") as refusal:
        _read(file, f"{','.join(['Step', *columns])}\n0,1,1,1,2,2,2\n5,3,3,3,4,4,4\n")
    assert "--groups" not in str(refusal.value)


def test_an_index_without_a_name_is_not_read_as_a_group(file):
    pd.DataFrame({"old": [1.0, 3.0], "new": [2.0, 4.0]}).to_csv(file)
    with pytest.raises(Unanswered, match="if each row is a seed, and old and new are the groups"):
        read_csv(file)
    values = [row.value for row in read_csv(file, groups=("old", "new")).rows]
    assert values == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("text", "groups", "complaint"),
    [
        (WIDE, ("old", "nev"), "no column 'nev'; did you mean new"),
        (WIDE, ("old",), "at least two columns"),
        (WIDE, ("old", "old"), "each of them once"),
        (WIDE, ("old", "note"), "row 3, column note: expected a number, such as 71.25, not 'x'"),
        ("group,seed,outcome,other\na,0,1,2\n", ("outcome", "other"), "has a column 'group', so each row is one run"),
        (
            "seed,group_id,old,new\n0,7,1,2\n",
            ("old", "new"),
            r"has a column 'group_id' \(group\), so each row is one run already; leave out --groups, or "
            "remove group_id",
        ),
        ("seed,endpoint,old,new\n0,7,1,2\n", ("old", "new"), r"has a column 'endpoint' \(outcome\)"),
    ],
)
def test_unreadable_groups_of_a_wide_table_are_refused(file, text, groups, complaint):
    with pytest.raises(UsageError, match=complaint):
        _read(file, text, groups)
