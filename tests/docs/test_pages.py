"""The documentation: links resolve, command lines and TOML parse, every flag of launch is described."""

import re
import tomllib
from pathlib import Path

import pytest
from support.commands.command_lines import check_command_line, commands_in

from esper_ab.commands.launch import command
from esper_ab.contracts.trainer import is_function
from esper_ab.gate.gate_file import read_gate_file
from esper_ab.settings.parts import parse_parts
from esper_ab.settings.request import read_request
from esper_ab.settings.settings_file import read_toml
from esper_ab.stream.stream_file import read_stream_file

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
# Pages written by hand; scripts write those of benchmarks, and the source map is a table.
WRITTEN = [page for page in PAGES if page.parent.name != "benchmarks" and page.name != "source-map.md"]


def _prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def _blocks(languages: str) -> list[tuple[str, str]]:
    """(page, text) of all blocks in these languages."""
    pattern = re.compile(rf"```(?:{languages})\n(.*?)```", flags=re.DOTALL)
    return [(page.name, block) for page in PAGES for block in pattern.findall(page.read_text())]


def _headings(page: Path) -> set[str]:
    """Anchors of a page, as GitHub makes them of its headings."""
    lines = re.findall(r"^#+ (.*)$", _prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_point_to_existing_files_and_headings(page):
    for target, anchor in re.findall(r"\]\((?![a-z]+:)([^)\s#]*)#?([^)\s]*)\)", _prose(page)):
        target_page = page.parent / target if target else page
        assert target_page.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in _headings(target_page), f"{page.name} links to {target}#{anchor}"


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: path.name)
def test_hand_written_lines_are_at_most_120_characters_wide(page):
    """So that a terminal or a split editor shows whole lines, also of tables."""
    own_text = re.sub(r"^<!-- (.+?) -->$.*?^<!-- /\1 -->$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert [(len(line), line) for line in own_text.splitlines() if len(line) > 120] == []


def _examples() -> list[tuple[str, str]]:
    """(page, line) of every line in a shell's block that calls us."""
    lines = [
        (page, line.strip().removeprefix("$ "))
        for page, block in _blocks("sh|bash|console")
        for line in block.replace("\\\n", " ").splitlines()
    ]
    return [(page, line) for page, line in lines if list(commands_in(line))]


@pytest.mark.parametrize(("page", "line"), _examples())
def test_command_lines_in_the_pages_can_be_parsed(page, line):
    """Options exist, and the groups, keys and values of a launch are valid."""
    for name, params in check_command_line(line):
        if name == "launch":
            campaign = params["what"] or ""
            called = "{" in campaign or is_function(campaign)
            assert called or Path(campaign).suffix in ("", ".py", ".toml")
            trained = called or (campaign.endswith(".py") and (params["higher"] or params["lower"]))
            request = read_request(params | {"trainer": campaign} if trained else params)
            assert parse_parts(request)[0].asked.groups


def test_toml_blocks_in_the_pages_can_be_parsed(tmp_path):
    path = tmp_path / "example.toml"
    blocks = _blocks("toml")
    assert blocks
    for _, block in blocks:
        tomllib.loads(block)
        path.write_text(block)
        if "\nminutes = " in block:
            assert read_gate_file(path).question().train
            continue
        if block.startswith("train = "):
            assert read_stream_file(path, tmp_path).train
            continue
        request = read_request({}, read_toml(path))
        assert parse_parts(request)[0].asked.groups


def test_the_cli_page_mentions_every_flag_of_launch():
    page = (ROOT / "docs" / "cli.md").read_text()
    for option in command.params:
        for flag in option.opts if option.param_type_name == "option" else ():
            assert f"`{flag}" in page, f"docs/cli.md does not mention {flag}"
