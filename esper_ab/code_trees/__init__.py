"""States of the user's code, for --code: sealed as git commits, checked out while runs train."""
