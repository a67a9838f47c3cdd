"""A catalogue of the descriptive statistics beside a verdict, one `STATISTIC` per file. No decision uses them."""
