"""The base of everything that goes over the wire."""

from __future__ import annotations

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """Base of every message; on the wire, the field `kind` holds the class name."""
