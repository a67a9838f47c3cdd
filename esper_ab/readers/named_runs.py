"""Groups of runs whose files have names that a library made, as W&B does: the user's names or settings tell them. Pure.

The user's names are those of the runs, and those of the folders in which the library was told to write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from esper_ab.contracts.errors import OpenQuestion, SettingName, Unanswered, UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted, listed
from esper_ab.formats.cells import cell_text
from esper_ab.formats.column_names import PAIR_COLUMNS
from esper_ab.formats.source_table import SourceTable
from esper_ab.readers.reading_rules import ReadingRules
from esper_ab.readers.run_names import RunName, read_names
from esper_ab.readers.run_patterns import infer_names, names_of_paths

_WANDB = "/wandb/"  # below the folder that the user chose
_MOST_SETTINGS = 6  # that a question lists


def name_their_runs(tables: Sequence[SourceTable]) -> bool:
    """True if every table has the name of its run, which the format tells."""
    return all("run" in table.roles for table in tables)


def names_of_runs(
    source: str,
    paths: Sequence[str],
    tables: Sequence[SourceTable],
    roles: Sequence[Mapping[str, str]],
    rules: ReadingRules,
) -> tuple[str, list[RunName]]:
    """Return the pattern by which the names of runs, or their folders, tell the groups, and what each of them says.

    Names that make each run a group of its own tell nothing. Raises Unanswered if a setting may tell the groups.
    """
    runs = [cell_text(table.columns[table.roles["run"]][0]) for table in tables]
    if rules.runs:
        try:
            return rules.runs, read_names(runs, rules.runs)
        except UsageError:
            return names_of_paths(source, paths, rules.runs, seeds=True, groups=True)
    lacks_seeds = any({*PAIR_COLUMNS}.isdisjoint(table_roles) for table_roles in roles)
    folders = [path.rpartition(_WANDB)[0] or path for path in paths]
    for texts in (runs, folders):
        for seeds in dict.fromkeys((lacks_seeds, True)):
            try:
                pattern, names = infer_names(texts, source, seeds=seeds, groups=True)
            except Unanswered:
                continue
            if min(Counter(name.group for name in names).values()) > 1:
                return pattern, names
    if settings := _differing_settings(tables, roles):
        raise Unanswered(source, [_which_setting(len(tables), settings, rules)])
    return names_of_paths(source, paths, "", seeds=lacks_seeds, groups=True)


def _differing_settings(tables: Sequence[SourceTable], roles: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the settings with several values, at least one of which several runs have."""
    settings = []
    for name in tables[0].columns:
        if name in tables[0].outcomes or name in {their for our, their in roles[0].items() if our != "run"}:
            continue
        values = {_only_value(table, name) for table in tables}
        if None not in values and 1 < len(values) < len(tables):
            settings.append(name)
    return settings


def _only_value(table: SourceTable, name: str) -> str | None:
    """Return the value of a setting in a run; None if it has none, or several."""
    values = set(map(cell_text, table.columns.get(name, ())))
    return values.pop() if len(values) == 1 else None


def _which_setting(count: int, settings: Sequence[str], rules: ReadingRules) -> OpenQuestion:
    shown_settings = settings[:_MOST_SETTINGS]
    more_words = f" and {len(settings) - _MOST_SETTINGS} more" if len(settings) > _MOST_SETTINGS else ""
    names = listed([visible_line(name, 60) for name in shown_settings])
    verb = "differs" if len(settings) == 1 else "differ"
    return OpenQuestion(
        f"the names of {counted(count, 'run')} do not tell their groups; of their settings, {names}{more_words} {verb} "
        "between runs, and may be the group",
        tuple(SettingName("columns", {**rules.names, "group": name}) for name in shown_settings),
    )
