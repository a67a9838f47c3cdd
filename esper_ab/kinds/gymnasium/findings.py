"""What an analysis of Gymnasium environments knows: own rewards, a baseline, and policies that end episodes. Pure."""

from __future__ import annotations

from esper_ab.analysis.kind import FindingsKind
from esper_ab.contracts.settings import GroupSettings


class GymnasiumFindings(FindingsKind):
    """No findings beyond the defaults; own rewards are compared."""

    baseline_controller = "random"
    baseline_words = "acts at random"
    compares_own_rewards = True

    def equal_steps(self, settings: GroupSettings) -> str:
        """Return the setting for rollouts of a fixed length; "" if they have one."""
        if settings.gym.rollout == "episodes":
            return "gym.rollout=resets"
        return ""


KIND = GymnasiumFindings()
