"""The page: one script by its hash and nothing else, and every point of a figure with its name."""

from __future__ import annotations

import base64
import hashlib
import html
import re

from support.journals import planted_effect

from esper_ab.journal.fold import fold
from esper_ab.report.content import content
from esper_ab.report.page import render_page


def test_the_policy_of_the_page_allows_its_own_script_and_nothing_else():
    found = content(fold(planted_effect()))
    text = render_page(found)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    allowed = dict(part.split(" ", 1) for part in html.unescape(policy).split("; "))
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert allowed["script-src"] == f"'sha256-{digest}'"
    assert allowed["default-src"] == "'none'"


def test_every_point_of_a_figure_names_its_run():
    found = content(fold(planted_effect()))
    text = render_page(found)
    for place, group in enumerate(found.groups):
        for run in found.of_group(group):
            assert f'data-mark="{place}-{run.run.replicate}"><title>{group}, replicate {run.run.replicate}: ' in text
