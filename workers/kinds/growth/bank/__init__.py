"""Many hosts and their seeds, trained and measured side by side."""
