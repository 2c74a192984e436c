# SPDX-License-Identifier: BSD-3-Clause
"""Recipe for Spack: in a clone,

    spack repo add packaging/spack
    spack dev-build perdure@0.1.0

builds and installs the tree as it stands, with the MPI that Spack was asked to use.
There is no release to fetch yet.
"""

# ruff: noqa: F403, F405  as all recipes of Spack
import contextlib

from spack.package import *

# Spack 1.0 and newer have the build systems among the packages, older ones in spack.package.
with contextlib.suppress(ImportError):
    from spack_repo.builtin.build_systems.cmake import CMakePackage, generator


class Perdure(CMakePackage):
    """Persistence and energy efficiency for HPC applications on non-volatile memory."""

    version("0.1.0")

    variant("mpi", default=True, description="Persistent windows and the cache of MPI-IO")
    variant("python", default=True, description="The command perdure, and pools of numpy arrays")
    variant("apps", default=False, description="Solvers and benchmarks")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("isa-l")
    depends_on("xxhash", type="build")
    depends_on("libsodium")
    depends_on("zstd")
    depends_on("nlohmann-json@3.11:")
    depends_on("cli11", type="build")
    depends_on("mpi@3:", when="+mpi")

    with when("+python"):
        extends("python@3.10:")
        depends_on("py-nanobind@2.2:", type="build")
        depends_on("py-packaging", type="build")
        depends_on("py-typing-extensions", type="build", when="^python@:3.10")
        depends_on("py-numpy@1.24:", type=("build", "run"))
        depends_on("py-tomli@2:", type=("build", "run"), when="^python@:3.10")
        depends_on("py-typer@0.26:0.28", type=("build", "run"))
        depends_on("py-rich@13:", type=("build", "run"))
        depends_on("py-scipy@1.11:", type="run")
        depends_on("py-matplotlib@3.6:", type="run")
        depends_on("py-jinja2@3.1:", type="run")

    conflicts("%gcc@:11", msg="Perdure is C++20 and is built with GCC 12 or Clang 16 and newer")

    generator("ninja")

    def cmake_args(self):
        """Options of CMakeLists.txt."""
        arguments = [
            self.define("PERDURE_TESTS", False),
            self.define_from_variant("PERDURE_APPS", "apps"),
            self.define_from_variant("PERDURE_PYTHON", "python"),
        ]
        if self.spec.satisfies("+mpi"):
            arguments.append(self.define("PERDURE_MPI_WRAPPERS", self.spec["mpi"].mpicc))
        if self.spec.satisfies("+python"):
            arguments.append(self.define("Python_EXECUTABLE", self.spec["python"].command.path))
        return arguments

    def setup_run_environment(self, env):
        """As the module file does it."""
        env.prepend_path("PYTHONPATH", join_path(self.prefix.lib, "perdure", "python"))
        env.set("PERDURE_ROOT", self.prefix)
