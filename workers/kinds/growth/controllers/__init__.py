"""A catalogue of controllers that decide in the place of a trained policy, one file each."""
