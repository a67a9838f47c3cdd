"""What happened, as an append-only file of events: its CRC chain, its locks, its fold to a History."""
