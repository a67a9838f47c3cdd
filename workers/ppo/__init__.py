"""PPO: a policy's rollouts and updates, whatever the kind of task."""
