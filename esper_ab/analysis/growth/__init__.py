"""What only growth has in an analysis: the screening, baselines, what parameters are worth. Pure."""
