"""Functions and files of the user: loading them, copying them, finding what they import."""
