// SPDX-License-Identifier: BSD-3-Clause
//
// Handles that the MPI library of this process predefines.
//
// Threads: any.
#pragma once

#include <mpi.h>

#include "mpi/process_mpi.hpp"

namespace perdure {

// Those of Open MPI are addresses of its variables, to which a preloaded
// library must hold no reference of its own.
#ifdef OPEN_MPI
template <typename Handle>
Handle predefined(const char* name) {
  return static_cast<Handle>(mpi_variable(name));
}
inline MPI_Comm comm_null() {
  return predefined<MPI_Comm>("ompi_mpi_comm_null");
}
inline MPI_Comm comm_world() {
  return predefined<MPI_Comm>("ompi_mpi_comm_world");
}
inline MPI_Comm comm_self() {
  return predefined<MPI_Comm>("ompi_mpi_comm_self");
}
inline MPI_File file_null() {
  return predefined<MPI_File>("ompi_mpi_file_null");
}
inline MPI_Win win_null() {
  return predefined<MPI_Win>("ompi_mpi_win_null");
}
inline MPI_Info info_null() {
  return predefined<MPI_Info>("ompi_mpi_info_null");
}
inline MPI_Request request_null() {
  return predefined<MPI_Request>("ompi_request_null");
}
inline MPI_Datatype type_byte() {
  return predefined<MPI_Datatype>("ompi_mpi_byte");
}
inline MPI_Datatype type_int64() {
  return predefined<MPI_Datatype>("ompi_mpi_int64_t");
}
inline MPI_Datatype type_null() {
  return predefined<MPI_Datatype>("ompi_mpi_datatype_null");
}
inline MPI_Op op_max() {
  return predefined<MPI_Op>("ompi_mpi_op_max");
}
inline MPI_Errhandler errors_are_fatal() {
  return predefined<MPI_Errhandler>("ompi_mpi_errors_are_fatal");
}
inline MPI_Errhandler errors_return() {
  return predefined<MPI_Errhandler>("ompi_mpi_errors_return");
}
#else
inline MPI_Comm comm_null() {
  return MPI_COMM_NULL;
}
inline MPI_Comm comm_world() {
  return MPI_COMM_WORLD;
}
inline MPI_Comm comm_self() {
  return MPI_COMM_SELF;
}
inline MPI_File file_null() {
  return MPI_FILE_NULL;
}
inline MPI_Win win_null() {
  return MPI_WIN_NULL;
}
inline MPI_Info info_null() {
  return MPI_INFO_NULL;
}
inline MPI_Request request_null() {
  return MPI_REQUEST_NULL;
}
inline MPI_Datatype type_byte() {
  return MPI_BYTE;
}
inline MPI_Datatype type_int64() {
  return MPI_INT64_T;
}
inline MPI_Datatype type_null() {
  return MPI_DATATYPE_NULL;
}
inline MPI_Op op_max() {
  return MPI_MAX;
}
inline MPI_Errhandler errors_are_fatal() {
  return MPI_ERRORS_ARE_FATAL;
}
inline MPI_Errhandler errors_return() {
  return MPI_ERRORS_RETURN;
}
#endif

}  // namespace perdure
