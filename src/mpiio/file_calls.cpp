#include "mpiio/file_calls.hpp"

#include <mutex>

#include "mpiio/data_access.hpp"
#include "mpiio/file_admin.hpp"
#include "mpiio/recorder.hpp"

namespace perdure {
namespace {

void bind_all() {
#define PERDURE_BIND(x) FileCalls::x::bind();
  PERDURE_CALLS_COUNTED(PERDURE_BIND)
  PERDURE_CALLS_END(PERDURE_BIND)
  PERDURE_CALLS_OTHER(PERDURE_BIND)
  FileCalls::delete_::bind();
#undef PERDURE_BIND
#if MPI_VERSION >= 4
#define PERDURE_BIND(x) FileCalls::x##_c::bind();
  PERDURE_CALLS_COUNTED(PERDURE_BIND)
#undef PERDURE_BIND
#endif
}

}  // namespace

void bind_file_calls() {
  static std::once_flag once;
  std::call_once(once, [] {
    bind_all();
    direct<FileCalls::open>(true, file_open);
    direct<FileCalls::delete_>(true, file_delete);
    record_file_calls();
  });
}

void take_file_calls(bool take) {
  take_data_access(take);
  direct<FileCalls::close>(take, file_close);
  direct<FileCalls::set_size>(take, file_set_size);
  direct<FileCalls::preallocate>(take, file_preallocate);
  direct<FileCalls::get_size>(take, file_get_size);
  direct<FileCalls::set_info>(take, file_set_info);
  direct<FileCalls::get_info>(take, file_get_info);
  direct<FileCalls::set_view>(take, file_set_view);
  direct<FileCalls::seek>(take, file_seek);
  direct<FileCalls::get_position>(take, file_get_position);
  direct<FileCalls::seek_shared>(take, file_seek_shared);
  direct<FileCalls::get_position_shared>(take, file_get_position_shared);
  direct<FileCalls::set_atomicity>(take, file_set_atomicity);
  direct<FileCalls::get_atomicity>(take, file_get_atomicity);
  direct<FileCalls::sync>(take, file_sync);
}

}  // namespace perdure
