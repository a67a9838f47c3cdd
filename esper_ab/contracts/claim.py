"""What a plan sets out to show: that groups differ, or that a group is not worse than the control. Pure."""

from __future__ import annotations

from typing import Literal

Claim = Literal["difference", "not-worse"]
