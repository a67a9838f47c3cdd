"""Errors of msgspec for bytes that were damaged; there are several, and all must be caught."""

from __future__ import annotations

import msgspec

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)
