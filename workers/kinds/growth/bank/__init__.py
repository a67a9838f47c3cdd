"""Many hosts and their seeds, trained side by side."""
