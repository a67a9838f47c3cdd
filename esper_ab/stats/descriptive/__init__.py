"""A catalogue of the descriptive statistics shown with a verdict, one `STATISTIC` per file. No decision uses them."""
