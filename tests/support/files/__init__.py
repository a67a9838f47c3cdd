"""Files and texts that cause trouble."""
