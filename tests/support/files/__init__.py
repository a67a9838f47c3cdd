"""Limits on the size of files, system calls that fail, and hostile text."""
