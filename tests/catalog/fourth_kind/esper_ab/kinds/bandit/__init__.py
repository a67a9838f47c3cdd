"""Bandits: machines with arms that pay with different probabilities; a task `bandit:K` has K arms."""
