"""What crosses the border between the control plane and the data plane: the only part of esper_ab that workers import.

No I/O, no torch. numpy only in `rng`, which the control plane does not load for `--help` and `status`.
"""
