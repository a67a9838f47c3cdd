"""The data plane of esper_ab: what trains, with torch. It is known by this line (contracts/own_packages)."""
