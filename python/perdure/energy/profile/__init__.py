"""Profiles: what a device does at each CPU frequency and number of writers, measured and read."""
