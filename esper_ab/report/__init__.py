"""Reports: text, JSON, Markdown and one HTML page, each computed from the experiment directory's journal alone."""
