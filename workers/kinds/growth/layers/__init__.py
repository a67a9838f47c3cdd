"""The layers that hosts and blueprints are made of, for many networks side by side."""
