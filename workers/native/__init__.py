"""The kernel in C++: computes policies, and trains and measures small networks."""
