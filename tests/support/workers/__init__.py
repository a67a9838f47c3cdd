"""Stand-ins for workers and for users' trainers."""
