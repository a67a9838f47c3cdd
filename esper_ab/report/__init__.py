"""What a reader gets: text, JSON, one HTML page, SQL. All of it a function of the run directory's journal."""
