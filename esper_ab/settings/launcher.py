"""Options for starting workers, from flags, the [launcher] table of a file, or Python arguments.

Results do not depend on these options. If an option is not given, the launcher uses its own default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import did_you_mean

DEFAULT = "local"


class AskedLauncher(msgspec.Struct, frozen=True, kw_only=True):
    """Launcher options, named like the flags; None means that an option is not given."""

    launcher: str | None = None
    transport: Literal["ipc", "tcp"] | None = None
    ray_address: str | None = None
    ray_label: dict[str, str] | None = None
    ray_wait: Annotated[float, msgspec.Meta(ge=0)] | None = None

    @property
    def own(self) -> dict[str, Any]:
        """The options that only some launchers accept."""
        return {key: value for key, value in given_options(self).items() if key not in ("launcher", "transport")}

    @property
    def words(self) -> tuple[str, ...]:
        """The options as command-line flags."""
        words: list[str] = []
        for key, value in given_options(self).items():
            flag = f"--{key.replace('_', '-')}"
            if isinstance(value, dict):
                for name, label in value.items():
                    words += [flag, f"{name}={label}"]
            elif isinstance(value, float):
                words += [flag, f"{value:g}"]
            else:
                words += [flag, str(value)]
        return tuple(words)

    def over(self, weaker_options: AskedLauncher) -> AskedLauncher:
        """Return these options; an option that is not given is taken from `weaker_options`."""
        return msgspec.structs.replace(weaker_options, **given_options(self))


NOT_GIVEN = AskedLauncher()
msgspec.json.Decoder(AskedLauncher)  # built now, in one thread: tests/house/test_decoders.py


def given_options(launcher_options: AskedLauncher) -> dict[str, Any]:
    """Return the options that were given, by key."""
    return {key: value for key, value in msgspec.structs.asdict(launcher_options).items() if value is not None}


def asked_launcher(values: object, origin: str, spelling: Mapping[str, str] | None = None) -> AskedLauncher:
    """Check a table of options from `origin`; UsageError if the table is invalid.

    `spelling` maps each of our keys to its name at `origin`, if the two differ.
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"{origin} must be a table, as in launcher.name = {values!r}")
    spelling = spelling or {}
    known_spellings = {spelling.get(key, key): key for key in AskedLauncher.__struct_fields__}
    for name in values:
        if name not in known_spellings:
            raise UsageError(f"{origin}: unknown key {name!r}; {did_you_mean(name, known_spellings)}")
    options: dict[str, Any] = {}
    for name, value in values.items():
        try:
            options |= given_options(msgspec.convert({known_spellings[name]: value}, AskedLauncher))
        except msgspec.ValidationError as error:
            problem = str(error).partition(" - at")[0].replace(" | null", "")
            raise UsageError(f"{origin}: {name} {value!r}: {problem}") from None
    return AskedLauncher(**options)
