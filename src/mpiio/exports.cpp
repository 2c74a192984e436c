// The names of MPI's file calls that this library defines: each a jump to where file_calls.hpp
// directs it. Both MPI_X and PMPI_X are taken, as Fortran bindings call either.
#include <mpi.h>

#include "mpi/caller_scope.hpp"
#include "mpiio/file_calls.hpp"
#include "mpiio/open_file.hpp"
#include "perdure/perdure.h"

#define EXPORTED PERDURE_API
#define JUMP(x) FileCalls::x::entry.load(std::memory_order_relaxed)
#define ALSO_PMPI(x) \
  EXPORTED decltype(MPI_File_##x) PMPI_File_##x __attribute__((alias("MPI_File_" #x)));

using namespace perdure;  // NOLINT(google-build-using-namespace): MPI's names stand below

// The shapes of calls that have a count; `buffer_type` is const for writing.
#define EXPORT_AT(x, buffer_type, count_type)                                          \
  EXPORTED int MPI_File_##x(MPI_File file, MPI_Offset offset, buffer_type buffer,      \
                            count_type count, MPI_Datatype type, MPI_Status* status) { \
    return JUMP(x)(file, offset, buffer, count, type, status);                         \
  }                                                                                    \
  ALSO_PMPI(x)
#define EXPORT_HERE(x, buffer_type, count_type)                                  \
  EXPORTED int MPI_File_##x(MPI_File file, buffer_type buffer, count_type count, \
                            MPI_Datatype type, MPI_Status* status) {             \
    return JUMP(x)(file, buffer, count, type, status);                           \
  }                                                                              \
  ALSO_PMPI(x)
#define EXPORT_IAT(x, buffer_type, count_type)                                           \
  EXPORTED int MPI_File_##x(MPI_File file, MPI_Offset offset, buffer_type buffer,        \
                            count_type count, MPI_Datatype type, MPI_Request* request) { \
    return JUMP(x)(file, offset, buffer, count, type, request);                          \
  }                                                                                      \
  ALSO_PMPI(x)
#define EXPORT_IHERE(x, buffer_type, count_type)                                 \
  EXPORTED int MPI_File_##x(MPI_File file, buffer_type buffer, count_type count, \
                            MPI_Datatype type, MPI_Request* request) {           \
    return JUMP(x)(file, buffer, count, type, request);                          \
  }                                                                              \
  ALSO_PMPI(x)
#define EXPORT_AT_BEGIN(x, buffer_type, count_type)                               \
  EXPORTED int MPI_File_##x(MPI_File file, MPI_Offset offset, buffer_type buffer, \
                            count_type count, MPI_Datatype type) {                \
    return JUMP(x)(file, offset, buffer, count, type);                            \
  }                                                                               \
  ALSO_PMPI(x)
#define EXPORT_HERE_BEGIN(x, buffer_type, count_type)                            \
  EXPORTED int MPI_File_##x(MPI_File file, buffer_type buffer, count_type count, \
                            MPI_Datatype type) {                                 \
    return JUMP(x)(file, buffer, count, type);                                   \
  }                                                                              \
  ALSO_PMPI(x)
#define EXPORT_END(x, buffer_type)                                                   \
  EXPORTED int MPI_File_##x(MPI_File file, buffer_type buffer, MPI_Status* status) { \
    return JUMP(x)(file, buffer, status);                                            \
  }                                                                                  \
  ALSO_PMPI(x)

// With int counts, and with MPI_Count where the MPI has them.
#if MPI_VERSION >= 4
#define BOTH(shape, x, buffer_type) shape(x, buffer_type, int) shape(x##_c, buffer_type, MPI_Count)
#else
#define BOTH(shape, x, buffer_type) shape(x, buffer_type, int)
#endif
#define READ_WRITE(shape, read_call, write_call) \
  BOTH(shape, read_call, void*) BOTH(shape, write_call, const void*)

extern "C" {

EXPORTED int MPI_File_open(MPI_Comm comm, const char* name, int amode, MPI_Info info,
                           MPI_File* file) {
  const CallerScope caller(__builtin_return_address(0));
  return JUMP(open)(comm, name, amode, info, file);
}
ALSO_PMPI(open)

EXPORTED int MPI_File_delete(const char* name, MPI_Info info) {
  const CallerScope caller(__builtin_return_address(0));
  return JUMP(delete_)(name, info);
}
ALSO_PMPI(delete)

EXPORTED int MPI_File_close(MPI_File* file) {
  return JUMP(close)(file);
}
ALSO_PMPI(close)

EXPORTED int MPI_File_set_size(MPI_File file, MPI_Offset size) {
  return JUMP(set_size)(file, size);
}
ALSO_PMPI(set_size)

EXPORTED int MPI_File_preallocate(MPI_File file, MPI_Offset size) {
  return JUMP(preallocate)(file, size);
}
ALSO_PMPI(preallocate)

EXPORTED int MPI_File_get_size(MPI_File file, MPI_Offset* size) {
  return JUMP(get_size)(file, size);
}
ALSO_PMPI(get_size)

EXPORTED int MPI_File_set_info(MPI_File file, MPI_Info info) {
  return JUMP(set_info)(file, info);
}
ALSO_PMPI(set_info)

EXPORTED int MPI_File_get_info(MPI_File file, MPI_Info* info) {
  return JUMP(get_info)(file, info);
}
ALSO_PMPI(get_info)

EXPORTED int MPI_File_set_view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype,
                               MPI_Datatype filetype, const char* datarep, MPI_Info info) {
  return JUMP(set_view)(file, displacement, etype, filetype, datarep, info);
}
ALSO_PMPI(set_view)

EXPORTED int MPI_File_seek(MPI_File file, MPI_Offset offset, int whence) {
  return JUMP(seek)(file, offset, whence);
}
ALSO_PMPI(seek)

EXPORTED int MPI_File_get_position(MPI_File file, MPI_Offset* offset) {
  return JUMP(get_position)(file, offset);
}
ALSO_PMPI(get_position)

EXPORTED int MPI_File_seek_shared(MPI_File file, MPI_Offset offset, int whence) {
  return JUMP(seek_shared)(file, offset, whence);
}
ALSO_PMPI(seek_shared)

EXPORTED int MPI_File_get_position_shared(MPI_File file, MPI_Offset* offset) {
  return JUMP(get_position_shared)(file, offset);
}
ALSO_PMPI(get_position_shared)

EXPORTED int MPI_File_set_atomicity(MPI_File file, int flag) {
  return JUMP(set_atomicity)(file, flag);
}
ALSO_PMPI(set_atomicity)

EXPORTED int MPI_File_get_atomicity(MPI_File file, int* flag) {
  return JUMP(get_atomicity)(file, flag);
}
ALSO_PMPI(get_atomicity)

EXPORTED int MPI_File_sync(MPI_File file) {
  return JUMP(sync)(file);
}
ALSO_PMPI(sync)

READ_WRITE(EXPORT_AT, read_at, write_at)
READ_WRITE(EXPORT_AT, read_at_all, write_at_all)
READ_WRITE(EXPORT_HERE, read, write)
READ_WRITE(EXPORT_HERE, read_all, write_all)
READ_WRITE(EXPORT_HERE, read_shared, write_shared)
READ_WRITE(EXPORT_HERE, read_ordered, write_ordered)
READ_WRITE(EXPORT_IAT, iread_at, iwrite_at)
READ_WRITE(EXPORT_IAT, iread_at_all, iwrite_at_all)
READ_WRITE(EXPORT_IHERE, iread, iwrite)
READ_WRITE(EXPORT_IHERE, iread_all, iwrite_all)
READ_WRITE(EXPORT_IHERE, iread_shared, iwrite_shared)
READ_WRITE(EXPORT_AT_BEGIN, read_at_all_begin, write_at_all_begin)
READ_WRITE(EXPORT_HERE_BEGIN, read_all_begin, write_all_begin)
READ_WRITE(EXPORT_HERE_BEGIN, read_ordered_begin, write_ordered_begin)
EXPORT_END(read_at_all_end, void*)
EXPORT_END(write_at_all_end, const void*)
EXPORT_END(read_all_end, void*)
EXPORT_END(write_all_end, const void*)
EXPORT_END(read_ordered_end, void*)
EXPORT_END(write_ordered_end, const void*)

EXPORTED int MPI_Error_string(int code, char* text, int* length) {
  return file_error_string(code, text, length);
}

}  // extern "C"
