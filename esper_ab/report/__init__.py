"""Reports: text, JSON, Markdown and one HTML page, each a function of the run directory's journal."""
