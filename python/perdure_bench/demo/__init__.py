# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure demo`: a solver survives SIGKILL, and what its protections cost."""
