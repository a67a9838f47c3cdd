"""A catalogue of blueprints, the networks that a seed can grow into, one file each."""
