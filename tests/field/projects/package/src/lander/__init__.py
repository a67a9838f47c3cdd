"""A package that is not installed, in a folder `src`, as many templates have it."""
