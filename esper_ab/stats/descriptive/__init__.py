"""A catalogue of the statistics shown beside a verdict, one `STATISTIC` per file. None decides."""
