// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI library that this process has, seen from a library that comes before it: which it is,
// whether we serve it, and its functions.
//
// Perdure's libraries define names of MPI, and are not linked with any MPI library, so that they
// can be preloaded into programs that use none (mpiexec, a shell) and into those that load one
// later and privately (Python). So the MPI library is looked for when it is first needed. It may be
// one whose handles are others than those that we were compiled for: then no handle is looked at,
// all calls are passed on, and the process says so in one line.
//
// Nothing here knows mpi.h. Threads: any. Failure: what is absent is null or empty.
#pragma once

#include <string>
#include <string_view>

#include "mpi/taken_call.hpp"

namespace perdure {

// How the handles and constants of an MPI library look to a compiled program.
enum class MpiAbi {
  none,      // the process has no MPI library, or none yet
  mpich,     // of MPICH, and of those that keep to it: Intel MPI, MVAPICH, Cray MPICH
  openmpi,   // of Open MPI
  standard,  // of MPI 5: libmpi_abi.so
  other,
};

struct ProcessMpi {
  MpiAbi abi = MpiAbi::none;
  std::string name;  // as the library calls itself: "Open MPI v4.1.4"
};

// From the text of MPI_Get_library_version and the major number of MPI_Abi_get_version, which is
// below 1 in a library of another binary interface than the standard's.
ProcessMpi describe_mpi(std::string_view version_text, int standard_major);

// The file that serves an MPI, "libperdure_mpi_mpich.so"; empty: there is none.
std::string library_for(MpiAbi abi);

// The same under the name by which programs load it, that of its SONAME: "….so.0.1". Without that
// number it is a link for who builds programs, which may lead to another version or be none.
std::string loaded_library_for(MpiAbi abi);

// What a library that serves `served` says in a process that has `mpi`; empty: it serves.
std::string reason_to_stand_aside(const ProcessMpi& mpi, MpiAbi served);

// The one line of a job, or of each process where no launcher says which rank it is.
void say_standing_aside(const std::string& reason);

// Asks the MPI library of this process, which need not be initialised.
ProcessMpi find_process_mpi();

// The definition of `name` that would be taken if we were not there, or null.
void* mpi_symbol(const char* name);

// The variable `name` of the MPI library as the whole process sees it, which may be a copy in the
// executable (a copy relocation).
void* mpi_variable(const char* name);

// Makes an MPI library that the program loaded for itself alone visible to our own calls of PMPI_*.
void make_mpi_global();

// Whether the code at `address` belongs to the MPI library, but not to its Fortran bindings, which
// speak for the program.
bool in_mpi_library(const void* address);

// Whether it belongs to the same library or program as this function.
bool in_perdure(const void* address);

// Leads the call to what it would reach if we were not there.
void pass_on(TakenCall& taken);

// Where an exported name leads, once its kind is bound. If that is nowhere, the MPI library lacks
// it: then the process ends with a sentence, as by the dynamic linker.
void* destination(const std::atomic<void*>& to, const char* name);

}  // namespace perdure
