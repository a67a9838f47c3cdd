"""PPO: agent, rollout, update and normalisation. It knows no task."""
