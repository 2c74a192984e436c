# SPDX-License-Identifier: BSD-3-Clause
"""Profiles: what a device does at each CPU frequency and number of writers, measured and read."""
