import pytest

from esper_ab.contracts.code_state import StateOfCode, read_code, tree_of, written_code

COMMIT = "1a2b3c4d" * 5


def state(**facts):
    return StateOfCode(
        **{"group": "base", "asked": "main", "commit": COMMIT, "sealed": COMMIT, "top": "/project", **facts}
    )


def test_states_are_read_as_they_are_written():
    entries = ("base=main", "head=./other=folder")
    assert read_code(entries) == {"base": "main", "head": "./other=folder"}
    assert written_code(read_code(entries)) == entries


@pytest.mark.parametrize("entries", [("base",), ("=main",), ("base=",), ("base=main", "base=dev")])
def test_anything_else_is_refused(entries):
    with pytest.raises(ValueError, match=r"expected NAME=COMMIT|is named twice"):
        read_code(entries)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "main (1a2b3c4)"),
        ({"asked": COMMIT}, "commit 1a2b3c4"),
        ({"asked": "/project"}, "the working tree at 1a2b3c4 without changes"),
        ({"asked": "/project", "changed": 1, "sealed": "f" * 40}, "the working tree at 1a2b3c4 with 1 changed file"),
        ({"asked": "/plain", "commit": ""}, "the folder /plain"),
    ],
)
def test_a_state_in_words(facts, words):
    assert state(**facts).words == words


def test_only_what_is_no_commit_of_the_user_is_kept():
    assert not state().kept
    assert state(sealed="f" * 40).kept


def test_the_tree_of_a_group_has_a_safe_name():
    assert tree_of(state(group="lr=0.1", inside="sub")).folder == "code/trees/lr_0.1"
