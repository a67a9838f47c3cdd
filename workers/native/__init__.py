"""The kernel in C++ that trains hosts and policies on a CPU: sources, build, binding."""
