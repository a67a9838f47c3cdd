"""A catalogue of the descriptive statistics shown beside a verdict, one `STATISTIC` per file; no decision uses one."""
