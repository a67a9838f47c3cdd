"""Cases for the kernel and for policies, beside torch."""
