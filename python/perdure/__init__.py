"""Persistence for HPC applications on non-volatile memory: the `perdure` command."""

from pkgutil import extend_path

# In a build tree the compiled module perdure._core stands in another folder named perdure.
__path__ = extend_path(__path__, __name__)
