"""The reward audit: behaviours are played once, and scored under every reward."""
