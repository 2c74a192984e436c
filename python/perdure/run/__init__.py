# SPDX-License-Identifier: BSD-3-Clause
"""`perdure run`: starts a job, shows what its ranks tell, and restarts it after a failure.

Reading order: job (attempts and restarts), attempt (one process tree), page (what ranks tell),
spread, allocation and placement (which nodes, how they are asked for), ranks and stall (when an
attempt has no future), processes and leftovers (nothing of a failed attempt stays), report (table
and JSON).
"""
