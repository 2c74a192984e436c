// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure's errors as MPI's: one error class, one code for each perdure_error, whose text is the
// sentence of the newest failure.
#include <array>
#include <mutex>
#include <string>

#include "capi/pool_handle.hpp"
#include "rma/window_calls.hpp"

namespace perdure {
namespace {

constexpr std::size_t codes = 32;

struct ErrorCodes {
  std::mutex mutex;
  int error_class = MPI_SUCCESS;
  std::array<int, codes> of{};  // by -Code
};

int error_code(const Status& status) {
  static ErrorCodes known;
  const std::lock_guard<std::mutex> lock(known.mutex);
  if (known.error_class == MPI_SUCCESS) {
    PMPI_Add_error_class(&known.error_class);
    PMPI_Add_error_string(known.error_class, "Perdure");
  }
  int& code = known.of[static_cast<std::size_t>(-static_cast<int>(status.code())) % codes];
  if (code == MPI_SUCCESS) PMPI_Add_error_code(known.error_class, &code);
  std::string text = "Perdure: " + status.message();
  if (text.size() >= MPI_MAX_ERROR_STRING) text.resize(MPI_MAX_ERROR_STRING - 1);
  PMPI_Add_error_string(code, text.c_str());
  return code;
}

}  // namespace

int raise_on_comm(MPI_Comm comm, const Status& status) {
  report(status);
  const int code = error_code(status);
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

int raise_on_window(MPI_Win window, const Status& status) {
  report(status);
  const int code = error_code(status);
  PMPI_Win_call_errhandler(window, code);
  return code;
}

}  // namespace perdure
