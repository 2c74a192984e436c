// SPDX-License-Identifier: BSD-3-Clause
//
// Every call of MPI that moves bytes between memory and a file, chosen by what it is asked to do.
#ifndef PERDURE_TESTS_MPIIO_ORACLE_TRANSFER_HPP
#define PERDURE_TESTS_MPIIO_ORACLE_TRANSFER_HPP

#include <mpi.h>

namespace oracle {

enum class Where { at, individual, shared };
// With Where::shared, collective and split are the ordered calls; there is no fifth one.
enum class Form { blocking, nonblocking, collective, split, nonblocking_collective };

struct Transfer {
  bool write = false;
  Where where = Where::at;
  Form form = Form::blocking;
  bool wide = false;  // the large-count call, where MPI has them
  MPI_Offset at = 0;
  void* memory = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
};

const char* name_of(Where where);
const char* name_of(Form form);

// Begins, and except in the two nonblocking forms ends, the transfer. A call that fails leaves no
// request.
int start(MPI_File file, const Transfer& transfer, MPI_Request& request, MPI_Status& status);

}  // namespace oracle
#endif
