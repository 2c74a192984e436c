"""The memory simulator's front end: runs, sweeps of capacities, the best one, pictures."""
