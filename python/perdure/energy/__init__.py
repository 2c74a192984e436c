# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoint intervals, CPU frequencies and writers that cost the least time or energy."""
