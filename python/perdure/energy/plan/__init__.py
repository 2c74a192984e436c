"""Plans: which settings and interval, made from options, written, read, played, explained."""
