"""The data plane of esper_ab: training, with torch.

`contracts/own_packages` recognises the package by this docstring.
"""
