"""Start a Ray or a Slurm cluster on this machine."""
