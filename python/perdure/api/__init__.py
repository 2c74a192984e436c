# SPDX-License-Identifier: BSD-3-Clause
"""Pools for Python programs: perdure.h on numpy arrays. `import perdure` has the public names."""
