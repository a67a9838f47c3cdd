"""The page with every key of a settings file agrees with the types."""

import settings_page

from esper_ab.settings.schema import FIELDS


def test_the_page_of_all_settings_is_what_the_types_say():
    assert settings_page.PAGE.read_text(encoding="utf-8") == settings_page.page(), "run scripts/settings_page.py"


def test_the_page_has_every_key_once_with_its_default():
    lines = settings_page.page().splitlines()
    for key, field in FIELDS.items():
        (row,) = [line for line in lines if line.startswith(f"| `{key}` |")]
        assert row.count(" | ") == 4, row
        assert (f"| `{key}` |  |" in row) == (field.default is None)


def test_a_comment_beside_or_above_a_field_is_its_meaning():
    source = '''
class A:
    """About A."""

    lr: float = "#"  # learning rate
    # Above the field,
    # in two lines.
    seeds: Annotated[
        int, 1
    ] = 2
    bare: int = 3
'''
    assert settings_page.comments_of(source) == {
        ("A", "lr"): "learning rate",
        ("A", "seeds"): "Above the field, in two lines.",
        ("A", "bare"): "",
    }
