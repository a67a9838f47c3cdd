"""From a request to a directory with an answer: plan a campaign, claim its directory, run it, resume it, answer."""
