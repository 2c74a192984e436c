// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure's errors as MPI's error classes for files, each with a code whose text is the sentence of
// the newest failure.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "mpi/mpi_library.hpp"
#include "mpiio/file_calls.hpp"
#include "mpiio/open_file.hpp"

namespace perdure {
namespace {

int error_class(Code code) {
  switch (code) {
    case Code::no_space:
      return MPI_ERR_NO_SPACE;
    case Code::busy:
      return MPI_ERR_FILE_IN_USE;
    case Code::invalid_argument:
      return MPI_ERR_ARG;
    case Code::unsupported:
      return MPI_ERR_UNSUPPORTED_OPERATION;
    case Code::not_found:
      return MPI_ERR_NO_SUCH_FILE;
    default:
      return MPI_ERR_IO;
  }
}

struct FileErrors {
  std::mutex mutex;
  std::map<int, int> codes;           // by class
  std::map<int, std::string> newest;  // by code
};

FileErrors& file_errors() {
  static FileErrors errors;
  return errors;
}

int error_code(const Status& status) {
  FileErrors& errors = file_errors();
  const std::lock_guard<std::mutex> lock(errors.mutex);
  const int wanted = error_class(status.code());
  auto [found, fresh] = errors.codes.try_emplace(wanted, wanted);
  if (fresh && PMPI_Add_error_code(wanted, &found->second) != MPI_SUCCESS) found->second = wanted;
  std::string text = "Perdure: " + status.message();
  if (text.size() >= MPI_MAX_ERROR_STRING) text.resize(MPI_MAX_ERROR_STRING - 1);
  if (found->second == wanted) return wanted;
  PMPI_Add_error_string(found->second, text.c_str());
  errors.newest[found->second] = text;
  return found->second;
}

// What MPI says of MPI_FILE_NULL's handler, where the library does not call it for us: it returns
// the code, unless the program made it fatal.
int raise_without_file(int code) {
#ifdef OPEN_MPI
  MPI_Errhandler handler{};
  PMPI_File_get_errhandler(file_null(), &handler);
  const bool fatal = handler == errors_are_fatal();
  PMPI_Errhandler_free(&handler);
  if (fatal) PMPI_Comm_call_errhandler(comm_world(), code);
#else
  PMPI_File_call_errhandler(file_null(), code);
#endif
  return code;
}

}  // namespace

// MPICH 4 has no text for a new code of one of MPI's own classes.
int file_error_string(int code, char* text, int* length) {
  {
    FileErrors& errors = file_errors();
    const std::lock_guard<std::mutex> lock(errors.mutex);
    const auto found = errors.newest.find(code);
    if (found != errors.newest.end()) {
      std::memcpy(text, found->second.c_str(), found->second.size() + 1);
      *length = static_cast<int>(found->second.size());
      return MPI_SUCCESS;
    }
  }
  return FileCalls::error_string::real(code, text, length);
}

int raise_on_file(MPI_File file, const Status& status) {
  const int code = error_code(status);
  if (file == file_null()) return raise_without_file(code);
  PMPI_File_call_errhandler(file, code);
  return code;
}

}  // namespace perdure
