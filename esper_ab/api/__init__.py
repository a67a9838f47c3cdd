"""The Python API, with which users declare, run and inspect experiments."""
