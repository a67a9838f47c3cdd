"""The engine's programs, which the control plane starts as child processes."""
