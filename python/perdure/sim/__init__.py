# SPDX-License-Identifier: BSD-3-Clause
"""The memory simulator's front end: runs, sweeps of capacities, the best one, pictures."""
