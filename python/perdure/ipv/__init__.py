# SPDX-License-Identifier: BSD-3-Clause
"""In-place versioning: which data a loop carries, and whether hooks keep to their rules."""
