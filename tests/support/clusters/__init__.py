"""Ray and Slurm on this machine."""
