"""Mutation testing of the pure rooms, for scripts/mutants: what is changed, where, and which test detects it."""
