# SPDX-License-Identifier: BSD-3-Clause
#
# Libraries that Perdure is built on, each a Debian 12 package:
#   libisal-dev            CRC-64 at memory speed, and erasure codes; at run time not required
#   libxxhash-dev          XXH3, where CRC-64 is slower; its header only, nothing at run time
#   libsodium-dev          HMAC-SHA-256: who may connect to the servers of cached files
#   libzstd-dev            frames of memory traces
#   nlohmann-json3-dev     the device table and JSON lines
#   libcli11-dev           command lines of the applications and benchmarks
#   libgtest-dev           tests
#   libpmem-dev            only the yardstick of `perdure bench persist`; optional
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ISAL REQUIRED libisal)
add_library(perdure_isal_headers INTERFACE)  # the library is loaded where it is (base/isal.hpp)
target_include_directories(perdure_isal_headers SYSTEM INTERFACE ${ISAL_INCLUDE_DIRS})
find_path(PERDURE_XXHASH_INCLUDE xxhash.h REQUIRED)
add_library(perdure_xxhash INTERFACE)  # compiled into base
target_include_directories(perdure_xxhash SYSTEM INTERFACE ${PERDURE_XXHASH_INCLUDE})
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
find_package(nlohmann_json 3.11 REQUIRED)
if(PERDURE_TESTS OR PERDURE_APPS)
  find_package(CLI11 2.1 REQUIRED)
  include(perdure_cli11)
endif()

pkg_check_modules(LIBPMEM QUIET IMPORTED_TARGET libpmem)
if(PERDURE_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

# The libraries of files that are built on an MPI, as Debian has them: HDF5 with either, PnetCDF
# with its default, Open MPI.
foreach(mpi IN LISTS PERDURE_MPI_NAMES)
  find_path(PERDURE_HDF5_INCLUDE_${mpi} hdf5.h HINTS /usr/include/hdf5/${mpi} NO_DEFAULT_PATH)
  find_library(PERDURE_HDF5_${mpi} hdf5 NO_DEFAULT_PATH
               HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/hdf5/${mpi})
endforeach()
find_path(PERDURE_PNETCDF_INCLUDE pnetcdf.h)
find_library(PERDURE_PNETCDF pnetcdf)

# What tests are made and run with. Only .venv has numpy and pytest.
find_program(PERDURE_TEST_PYTHON python HINTS ${CMAKE_SOURCE_DIR}/.venv/bin NO_DEFAULT_PATH)
find_program(PERDURE_GFORTRAN gfortran)
find_library(PERDURE_LIBOMP omp PATHS /usr/lib/llvm-19/lib NO_DEFAULT_PATH)
