"""The rules of growth in numpy, pure: lifecycle, seeds, masks, observation, facts."""
