"""The versions of all packages as one hash. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping


def sha256_of_versions(versions: Mapping[str, str]) -> str:
    """Return the hash of versions by package, in any order and case; "" if there are none."""
    if not versions:
        return ""
    lines = sorted(f"{name.lower()}=={version}" for name, version in versions.items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
