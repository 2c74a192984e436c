# SPDX-License-Identifier: BSD-3-Clause
"""Plans: which settings and interval, made from options, written, read, played, explained."""
