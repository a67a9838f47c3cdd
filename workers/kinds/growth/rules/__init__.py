"""The rules of growing in numpy, pure: stages, valid decisions, observations, facts."""
