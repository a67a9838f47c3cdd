"""The facts that reward functions are given in tests, and reward functions that misbehave."""
