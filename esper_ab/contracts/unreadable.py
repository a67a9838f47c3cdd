"""What msgspec raises for bytes that are not what was written: damage has many names, and each has to be caught."""

from __future__ import annotations

import msgspec

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)
