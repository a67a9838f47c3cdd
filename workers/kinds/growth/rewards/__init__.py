"""A catalogue of rewards, one file each."""
