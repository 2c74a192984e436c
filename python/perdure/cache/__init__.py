# SPDX-License-Identifier: BSD-3-Clause
"""The MPI-IO cache from outside: what crashes left behind, and how to run a job with it."""
