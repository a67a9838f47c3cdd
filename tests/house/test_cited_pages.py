"""No text for users cites a page of docs/, which an installed package does not have."""

import ast
import re

from house.sources import breaking, nodes

PAGE = re.compile(r"docs/[\w/-]+\.md")


def _cited_pages(source: str) -> list[str]:
    """Return the pages cited in texts that users may see: those in code, and the help of commands."""
    comments = {id(node.value) for node in nodes(source) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in nodes(source)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments
    ]
    commands = [node for node in nodes(source) if isinstance(node, ast.FunctionDef) and node.name == "command"]
    helps = [ast.get_docstring(node) or "" for node in commands]
    return [page for text in (*texts, *helps) for page in PAGE.findall(text)]


def test_texts_for_users_cite_no_page() -> None:
    assert _cited_pages("def f():\n    return 'see docs/cli.md'") == ["docs/cli.md"]
    assert _cited_pages('def command():\n    """Train (docs/cli.md)."""') == ["docs/cli.md"]
    assert _cited_pages('"""See docs/cli.md."""\ndef f():\n    """As in docs/sql.md."""') == []
    assert breaking(_cited_pages) == set()
