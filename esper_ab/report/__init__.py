"""Reports as text, JSON, Markdown and an HTML page, computed from an experiment's journal alone."""
