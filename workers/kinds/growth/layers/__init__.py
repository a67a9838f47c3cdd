"""The layers of hosts and blueprints, for many networks side by side."""
