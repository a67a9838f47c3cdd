"""How workers are started, as flags, the table [launcher] of a file or arguments in Python say it.

No result depends on it. What nobody says is what the launcher takes by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import did_you_mean

DEFAULT = "local"


class AskedLauncher(msgspec.Struct, frozen=True, kw_only=True):
    """None: not said. The names are those of the flags."""

    launcher: str | None = None
    transport: Literal["ipc", "tcp"] | None = None
    ray_address: str | None = None
    ray_label: dict[str, str] | None = None
    ray_wait: Annotated[float, msgspec.Meta(ge=0)] | None = None

    @property
    def own(self) -> dict[str, Any]:
        """What only some launchers take."""
        return {key: value for key, value in said(self).items() if key not in ("launcher", "transport")}

    @property
    def words(self) -> tuple[str, ...]:
        """It as flags, as they would be typed."""
        words: list[str] = []
        for key, value in said(self).items():
            pairs = [f"{one}={other}" for one, other in value.items()] if isinstance(value, dict) else [value]
            for one in pairs:
                words += [f"--{key.replace('_', '-')}", f"{one:g}" if isinstance(one, float) else str(one)]
        return tuple(words)

    def over(self, weaker: AskedLauncher) -> AskedLauncher:
        """What is said here, and what only `weaker` says."""
        return msgspec.structs.replace(weaker, **said(self))


UNSAID = AskedLauncher()
msgspec.json.Decoder(AskedLauncher)  # now, in one thread: tests/house/test_decoders.py


def said(asked: AskedLauncher) -> dict[str, Any]:
    """What was said, by key."""
    return {key: value for key, value in msgspec.structs.asdict(asked).items() if value is not None}


def asked_launcher(values: object, origin: str, spelling: Mapping[str, str] | None = None) -> AskedLauncher:
    """Check what was said at `origin`, a table; UsageError. `spelling`: of keys that are called otherwise there."""
    if not isinstance(values, Mapping):
        raise UsageError(f"{origin} is a table, as in launcher.name = {values!r}")
    known = {(spelling or {}).get(key, key): key for key in AskedLauncher.__struct_fields__}
    for name in values:
        if name not in known:
            raise UsageError(f"{origin}: unknown key {name!r}; {did_you_mean(name, known)}")
    found: dict[str, Any] = {}
    for name, value in values.items():
        try:
            key = known[name]
            found |= said(msgspec.convert({key: value}, AskedLauncher))
        except msgspec.ValidationError as error:
            said_so = str(error).partition(" - at")[0].replace(" | null", "")
            raise UsageError(f"{origin}: {name} {value!r}: {said_so}") from None
    return AskedLauncher(**found)
