# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure report`: what a job, or a benchmark, did, on one page."""
