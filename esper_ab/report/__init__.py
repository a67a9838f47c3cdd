"""Reports: text, JSON, Markdown and one HTML page, each a function of the experiment directory's journal."""
