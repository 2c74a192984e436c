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
#define PERDURE_PREDEFINED(handle, name, variable, constant) \
  inline handle name() {                                     \
    return static_cast<handle>(mpi_variable(variable));      \
  }
#else
#define PERDURE_PREDEFINED(handle, name, variable, constant) \
  inline handle name() {                                     \
    return constant;                                         \
  }
#endif

PERDURE_PREDEFINED(MPI_Comm, comm_null, "ompi_mpi_comm_null", MPI_COMM_NULL)
PERDURE_PREDEFINED(MPI_Comm, comm_world, "ompi_mpi_comm_world", MPI_COMM_WORLD)
PERDURE_PREDEFINED(MPI_Comm, comm_self, "ompi_mpi_comm_self", MPI_COMM_SELF)
PERDURE_PREDEFINED(MPI_File, file_null, "ompi_mpi_file_null", MPI_FILE_NULL)
PERDURE_PREDEFINED(MPI_Win, win_null, "ompi_mpi_win_null", MPI_WIN_NULL)
PERDURE_PREDEFINED(MPI_Info, info_null, "ompi_mpi_info_null", MPI_INFO_NULL)
PERDURE_PREDEFINED(MPI_Request, request_null, "ompi_request_null", MPI_REQUEST_NULL)
PERDURE_PREDEFINED(MPI_Datatype, type_byte, "ompi_mpi_byte", MPI_BYTE)
PERDURE_PREDEFINED(MPI_Datatype, type_int64, "ompi_mpi_int64_t", MPI_INT64_T)
PERDURE_PREDEFINED(MPI_Datatype, type_null, "ompi_mpi_datatype_null", MPI_DATATYPE_NULL)
PERDURE_PREDEFINED(MPI_Op, op_max, "ompi_mpi_op_max", MPI_MAX)
PERDURE_PREDEFINED(MPI_Errhandler, errors_are_fatal, "ompi_mpi_errors_are_fatal",
                   MPI_ERRORS_ARE_FATAL)
PERDURE_PREDEFINED(MPI_Errhandler, errors_return, "ompi_mpi_errors_return", MPI_ERRORS_RETURN)
#undef PERDURE_PREDEFINED

}  // namespace perdure
