// SPDX-License-Identifier: BSD-3-Clause
#include "transfer.hpp"

#include <array>
#include <cstddef>

#if MPI_VERSION >= 4
#define PERDURE_CALL(name, ...) (t.wide ? name##_c(__VA_ARGS__) : name(__VA_ARGS__))
#else
#define PERDURE_CALL(name, ...) name(__VA_ARGS__)
#endif
// The call that reads or the one that writes.
#define PERDURE_MOVE(prefix, suffix, ...)                                \
  (t.write ? PERDURE_CALL(MPI_File_##prefix##write##suffix, __VA_ARGS__) \
           : PERDURE_CALL(MPI_File_##prefix##read##suffix, __VA_ARGS__))

namespace oracle {
namespace {

int start_blocking(MPI_File file, const Transfer& t, MPI_Status* status) {
  if (t.where == Where::at)
    return PERDURE_MOVE(, _at, file, t.at, t.memory, t.count, t.type, status);
  if (t.where == Where::individual) {
    return PERDURE_MOVE(, , file, t.memory, t.count, t.type, status);
  }
  return PERDURE_MOVE(, _shared, file, t.memory, t.count, t.type, status);
}

int start_collective(MPI_File file, const Transfer& t, MPI_Status* status) {
  if (t.where == Where::at) {
    return PERDURE_MOVE(, _at_all, file, t.at, t.memory, t.count, t.type, status);
  }
  if (t.where == Where::individual) {
    return PERDURE_MOVE(, _all, file, t.memory, t.count, t.type, status);
  }
  return PERDURE_MOVE(, _ordered, file, t.memory, t.count, t.type, status);
}

int start_nonblocking(MPI_File file, const Transfer& t, MPI_Request* request) {
  if (t.where == Where::at) {
    return PERDURE_MOVE(i, _at, file, t.at, t.memory, t.count, t.type, request);
  }
  if (t.where == Where::individual) {
    return PERDURE_MOVE(i, , file, t.memory, t.count, t.type, request);
  }
  return PERDURE_MOVE(i, _shared, file, t.memory, t.count, t.type, request);
}

int start_nonblocking_collective(MPI_File file, const Transfer& t, MPI_Request* request) {
  if (t.where == Where::at) {
    return PERDURE_MOVE(i, _at_all, file, t.at, t.memory, t.count, t.type, request);
  }
  return PERDURE_MOVE(i, _all, file, t.memory, t.count, t.type, request);
}

int begin_split(MPI_File file, const Transfer& t) {
  if (t.where == Where::at) {
    return PERDURE_MOVE(, _at_all_begin, file, t.at, t.memory, t.count, t.type);
  }
  if (t.where == Where::individual) {
    return PERDURE_MOVE(, _all_begin, file, t.memory, t.count, t.type);
  }
  return PERDURE_MOVE(, _ordered_begin, file, t.memory, t.count, t.type);
}

int end_split(MPI_File file, const Transfer& t, MPI_Status* status) {
  if (t.where == Where::at) {
    return t.write ? MPI_File_write_at_all_end(file, t.memory, status)
                   : MPI_File_read_at_all_end(file, t.memory, status);
  }
  if (t.where == Where::individual) {
    return t.write ? MPI_File_write_all_end(file, t.memory, status)
                   : MPI_File_read_all_end(file, t.memory, status);
  }
  return t.write ? MPI_File_write_ordered_end(file, t.memory, status)
                 : MPI_File_read_ordered_end(file, t.memory, status);
}

}  // namespace

const char* name_of(Where where) {
  constexpr std::array names = {"at", "individual", "shared"};
  return names[static_cast<std::size_t>(where)];
}

const char* name_of(Form form) {
  constexpr std::array names = {"blocking", "nonblocking", "collective", "split",
                                "nonblocking collective"};
  return names[static_cast<std::size_t>(form)];
}

int start(MPI_File file, const Transfer& t, MPI_Request& request, MPI_Status& status) {
  switch (t.form) {
    case Form::blocking:
      return start_blocking(file, t, &status);
    case Form::collective:
      return start_collective(file, t, &status);
    case Form::nonblocking:
      return start_nonblocking(file, t, &request);
    case Form::nonblocking_collective:
      return start_nonblocking_collective(file, t, &request);
    case Form::split:
      break;
  }
  const int code = begin_split(file, t);
  return code != MPI_SUCCESS ? code : end_split(file, t, &status);
}

}  // namespace oracle
