"""The task of growing networks: hosts that a policy grows while they train."""
