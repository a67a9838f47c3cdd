"""Behaviours are played and scored under any reward, before anything is trained."""
