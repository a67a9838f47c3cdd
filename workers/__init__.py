"""The data plane of esper_ab: training, with torch. The engine knows no kind of task.

`contracts/own_packages` recognises the package by this docstring.
"""
