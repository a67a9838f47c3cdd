"""Names in both packages: variables are not vague, and private functions contain a verb or a noun."""

import ast
import re

import pytest
from house.sources import breaking, nodes

# Words that fit any value: adjectives, adverbs, participles and prepositions without a noun.
# fmt: off
VAGUE = {
    "about", "also", "among", "anew", "apart", "beside", "between", "both", "by", "called", "dealt", "drawn",
    "equal", "every", "far", "found", "into", "judged", "learnt", "like", "likely", "loaded", "made", "many",
    "measured", "mine", "more", "near", "needed", "of", "off", "one", "only", "otherwise", "rest", "rose", "said",
    "sampled", "second", "shared", "shown", "singly", "there", "together", "told", "unknown", "usual", "why",
    "wide", "widest", "wrong",
}
# Words that say enough after the name of an object, as in `history.ended`, and not alone.
VAGUE_ALONE = {
    "across", "again", "alike", "alone", "asked", "at", "began", "begun", "caught", "checked", "chosen", "collected",
    "compared", "counted", "declared", "distinct", "dropped", "each", "earliest", "enclosed", "ended", "evaluated",
    "filled", "finished", "first", "given", "having", "holding", "how", "kept", "known", "lacking", "larger", "later",
    "left", "listed", "lost", "missing", "named", "names_words", "observed", "on", "others_words", "ours", "over",
    "own", "plain", "planned", "reached", "reduced", "rejected", "repeated", "rested", "resumed", "returned", "right",
    "running", "same", "scaled", "scored", "seen", "since", "single", "skipped", "small", "smaller", "stands",
    "stopped", "taken", "theirs", "then", "trained", "undecided", "unplanned", "unused", "used", "varying", "wanted",
    "warned", "what", "when", "where", "whole", "within", "without", "written",
}
# fmt: on
# Names of masks and other arrays end with a noun; `is_…` is True or False.
ARRAY_CALLS = {"array", "isin", "isfinite", "isnan", "zeros", "ones", "where", "logical_and", "logical_or"}


def _vague_names(source: str) -> list[str]:
    """Return vague names of parameters, variables and attributes; fields of structs are keys of JSON, so exempt."""
    bodies = [node.body for node in nodes(source) if isinstance(node, ast.ClassDef)]
    fields = {statement.target for body in bodies for statement in body if isinstance(statement, ast.AnnAssign)}
    fields |= {
        target
        for body in bodies
        for statement in body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    }
    variables = []
    attributes = []
    for node in nodes(source):
        if isinstance(node, ast.arg):
            variables.append(node.arg)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
            variables.append(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            attributes.append(node.attr)
    vague_variables = [name for name in variables if name in VAGUE | VAGUE_ALONE]
    return vague_variables + [name for name in attributes if name in VAGUE]


@pytest.mark.parametrize(
    "example",
    [
        "for one in x: pass",
        "def f(told): pass",
        "def f():\n more: int = 1",
        "x.said = 1",
        "whole = 1",
        "def f(seen): pass",
    ],
)
def test_names_of_variables_are_not_vague(example):
    assert _vague_names(example)
    assert not _vague_names("class Preview:\n    more: int\n    again = False\nhistory.ended = 1")
    assert breaking(_vague_names) == set()


def _arrays_named_as_answers(source: str) -> list[str]:
    """Return the names `is_…` that are given an array by a call of numpy."""
    names = []
    for node in nodes(source):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        function = node.value.func
        if isinstance(function, ast.Attribute) and function.attr in ARRAY_CALLS:
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if name.startswith("is_")]


def test_names_of_arrays_are_not_those_of_truth_values():
    assert _arrays_named_as_answers("is_lost = np.isnan(x)")
    assert not _arrays_named_as_answers("lost_mask = np.isnan(x)\nis_lost = bool(lost_mask.any())")
    assert breaking(_arrays_named_as_answers) == set()


# Words with which a name tells how a value is related to another one, but not what it is.
FIRST = re.compile(
    "_(about|above|across|against|again|alone|among|apart|as|at|before|behind|below|beside|between|beyond|by|for|from|"
    "here|in|into|near|not|of|off|on|once|onto|out|over|per|since|still|there|to|too|under|until|up|via|with|within|"
    "without|yet)(_.*)?"
)
LAST = re.compile("_(.*_)?(about|alone|beside|by|for|in|on|out|with)")


GIVEN = {"_on_step"}  # by the base classes of other libraries


def _bare_relations(source: str) -> list[str]:
    names = [node.name for node in nodes(source) if isinstance(node, ast.FunctionDef) and node.name not in GIVEN]
    return [name for name in names if FIRST.fullmatch(name) or LAST.fullmatch(name)]


@pytest.mark.parametrize("name", ["_of_part", "_beside", "_send_on", "_without_numbers"])
def test_names_of_private_functions_have_a_verb_or_a_noun(name):
    assert _bare_relations(f"def {name}(): pass")
    assert not _bare_relations("def _pairs_of(): pass")
    assert breaking(_bare_relations) == set()
