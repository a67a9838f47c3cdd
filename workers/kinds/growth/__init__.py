"""Growing networks: hosts that a policy grows while they train."""
