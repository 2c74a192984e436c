# SPDX-License-Identifier: BSD-3-Clause
"""The commands of `perdure sim`, one file each."""
