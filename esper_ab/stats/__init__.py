"""One file per statistic: arrays in, frozen results out. Knows no journal, no file and no run directory."""
