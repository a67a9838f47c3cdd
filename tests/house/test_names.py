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
# fmt: on


def _vague_names(source: str) -> list[str]:
    """Return vague names of parameters, variables and attributes; fields of structs are keys of JSON, so exempt."""
    bodies = [node.body for node in nodes(source) if isinstance(node, ast.ClassDef)]
    fields = {statement.target for body in bodies for statement in body if isinstance(statement, ast.AnnAssign)}
    names = []
    for node in nodes(source):
        if isinstance(node, ast.arg):
            names.append(node.arg)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
            names.append(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.append(node.attr)
    return [name for name in names if name in VAGUE]


@pytest.mark.parametrize(
    "example", ["for one in x: pass", "def f(told): pass", "def f():\n more: int = 1", "x.said = 1"]
)
def test_names_of_variables_are_not_vague(example):
    assert _vague_names(example)
    assert not _vague_names("class Preview:\n    more: int")
    assert breaking(_vague_names) == set()


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
