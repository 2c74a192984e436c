# SPDX-License-Identifier: BSD-3-Clause
"""`perdure doctor`: what Perdure will do on this machine and in a directory, and what to improve.

Each module looks at one part, and gives a list of checks (check.py). What the library decides is
asked of the library (perdure._core), so that nothing else is said than what a job then meets.
"""
