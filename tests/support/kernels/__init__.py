"""Cases on which the kernel and native policies are compared with torch."""
