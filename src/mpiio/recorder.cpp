// SPDX-License-Identifier: BSD-3-Clause
#include "mpiio/recorder.hpp"

#include <climits>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "mpi/at_finalize.hpp"
#include "mpi/caller_scope.hpp"
#include "mpi/datatype_map.hpp"
#include "mpi/mpi_group.hpp"
#include "mpi/mpi_library.hpp"
#include "mpi/record_line.hpp"
#include "mpiio/access_name.hpp"
#include "mpiio/file_calls.hpp"
#include "mpiio/file_record.hpp"
#include "mpiio/open_file.hpp"
#include "mpiio/report.hpp"

namespace perdure {
namespace {

constexpr const char* variable = record_variable;

HandleTable<MPI_File, FileRecord> record_table;
std::uint64_t run_began_ns = 0;
std::uint64_t counting_ns = 0;  // of reading the clock twice, which is in the time of every call

// A failing call counts too: it took its time.
template <typename Call, typename Count>
int timed(const Call& call, const Count& count) {
  const std::uint64_t began = monotonic_ns();
  const int error = call();
  const std::uint64_t took = monotonic_ns() - began;
  count(took > counting_ns ? took - counting_ns : 0);
  return error;
}

std::uint64_t clock_ns() {
  constexpr int times = 1000;
  const std::uint64_t began = monotonic_ns();
  for (int i = 0; i < times; ++i) (void)monotonic_ns();
  return (monotonic_ns() - began) / times;
}

// Where an access begins in the view, in bytes; negative: a shared pointer tells nobody.
std::int64_t position_of(const FileRecord& record, const Access& access, MPI_File file,
                         MPI_Offset offset) {
  if (access.pointer == Pointer::given) return offset * record.etype_bytes();
  if (access.pointer != Pointer::individual) return -1;
  MPI_Offset position = 0;
  if (FileCalls::get_position::next.load()(file, &position) != MPI_SUCCESS) return -1;
  return position * record.etype_bytes();
}

template <typename Call>
int timed_access(FileRecord& record, const Access& access, MPI_File file, MPI_Offset offset,
                 std::int64_t count, MPI_Datatype type, const Call& call) {
  const auto map = map_of(type);
  const std::int64_t at = position_of(record, access, file, offset);
  return timed(call, [&](std::uint64_t ns) {
    if (!map.ok() || count < 0) return;
    record.count_access(access, map.value()->contiguous, at, count * map.value()->size_bytes, ns);
  });
}

// Each shape of call (file_calls.hpp); Rest is a status, a request or nothing.
template <typename TheCall, const char* name>
struct Recorded {
  static constexpr Access access = access_of(name);

  template <typename Buffer, typename Count, typename... Rest>
  static int at(MPI_File file, MPI_Offset offset, Buffer* buffer, Count count, MPI_Datatype type,
                Rest... rest) {
    const auto call = [&] {
      return TheCall::next.load()(file, offset, buffer, count, type, rest...);
    };
    FileRecord* record = record_table.find(file);
    if (record == nullptr) return call();
    return timed_access(*record, access, file, offset, count, type, call);
  }

  template <typename Buffer, typename Count, typename... Rest>
  static int here(MPI_File file, Buffer* buffer, Count count, MPI_Datatype type, Rest... rest) {
    const auto call = [&] { return TheCall::next.load()(file, buffer, count, type, rest...); };
    FileRecord* record = record_table.find(file);
    if (record == nullptr) return call();
    return timed_access(*record, access, file, 0, count, type, call);
  }
};

template <typename TheCall, typename Buffer>
int split_end(MPI_File file, Buffer* buffer, MPI_Status* status) {
  FileRecord* record = record_table.find(file);
  const auto call = [&] { return TheCall::next.load()(file, buffer, status); };
  if (record == nullptr) return call();
  return timed(call, [&](std::uint64_t ns) { record->count_split_end(ns); });
}

template <typename TheCall, OtherCall kind, typename... Rest>
int other(MPI_File file, Rest... rest) {
  FileRecord* record = record_table.find(file);
  const auto call = [&] { return TheCall::next.load()(file, rest...); };
  if (record == nullptr) return call();
  return timed(call, [&](std::uint64_t ns) { record->count_other(kind, ns); });
}

int set_view(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
             const char* datarep, MPI_Info info) {
  const int error = other<FileCalls::set_view, OtherCall::set_view>(file, displacement, etype,
                                                                    filetype, datarep, info);
  FileRecord* record = record_table.find(file);
  if (error != MPI_SUCCESS || record == nullptr) return error;
  const auto of_etype = map_of(etype);
  const auto of_filetype = map_of(filetype);
  if (of_etype.ok() && of_filetype.ok()) {
    record->set_view(make_view(displacement, of_etype.value()->size_bytes, *of_filetype.value()));
  }
  return error;
}

std::uint64_t size_of(MPI_File file) {
  MPI_Offset bytes = 0;
  if (FileCalls::get_size::next.load()(file, &bytes) != MPI_SUCCESS) return 0;
  return static_cast<std::uint64_t>(bytes);
}

double seconds_since(std::uint64_t began_ns) {
  return static_cast<double>(monotonic_ns() - began_ns) * 1e-9;
}

void end_run() {
  RecordedRun run;
  PMPI_Comm_rank(comm_world(), &run.rank);
  PMPI_Comm_size(comm_world(), &run.ranks);
  run.run_s = seconds_since(run_began_ns);
  run.node = node_name();
  run.counting_ns = counting_ns;
  append_line(variable, line_of(run));
}

FileRecord::Opened opened_now(MPI_Comm comm, const char* name, int amode, std::uint64_t size) {
  FileRecord::Opened opened;
  char resolved[PATH_MAX];
  opened.path = ::realpath(name, resolved) == nullptr ? name : resolved;
  opened.node = node_name();
  PMPI_Comm_rank(comm_world(), &opened.rank);
  PMPI_Comm_size(comm, &opened.ranks);
  opened.read_only = (amode & MPI_MODE_RDONLY) != 0;
  opened.delete_on_close = (amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
  opened.size_bytes = size;
  opened.began_ns = monotonic_ns();
  return opened;
}

// Collective over the communicator of an opening, whether it failed or not: the size before any
// rank could write, or nothing if the communicator itself is wrong.
bool agree_on_size(MPI_Comm comm, int error, MPI_File file, std::uint64_t& size) {
  int kind = MPI_SUCCESS;
  PMPI_Error_class(error, &kind);
  if (kind == MPI_ERR_COMM || kind == MPI_ERR_ARG) return false;
  std::uint64_t inverted = error == MPI_SUCCESS ? ~size_of(file) : 0;
  if (max_over_ranks(comm, {&inverted, 1}) != MPI_SUCCESS) return false;
  size = ~inverted;
  return error == MPI_SUCCESS;
}

int open(MPI_Comm comm, const char* name, int amode, MPI_Info info, MPI_File* file) {
  const bool ours = !CallerScope::from_library();
  std::uint64_t took = 0;
  const int error =
      timed([&] { return FileCalls::open::next.load()(comm, name, amode, info, file); },
            [&](std::uint64_t ns) { took = ns; });
  std::uint64_t size = 0;
  if (!ours || !agree_on_size(comm, error, *file, size)) return error;
  at_finalize<end_run>();
  auto record = std::make_unique<FileRecord>(opened_now(comm, name, amode, size));
  record->count_other(OtherCall::open, took);
  if (!record_table.add(*file, record.get()).ok()) return error;
  if (OpenFile* cached = find_file(*file)) cached->record = record.get();
  (void)record.release();  // until close
  return error;
}

int close(MPI_File* file) {
  const std::unique_ptr<FileRecord> record(record_table.find(*file));
  const auto call = [&] { return FileCalls::close::next.load()(file); };
  if (record == nullptr) return call();
  const std::uint64_t bytes = size_of(*file);
  record_table.remove(*file);
  const int error =
      timed(call, [&](std::uint64_t ns) { record->count_other(OtherCall::close, ns); });
  append_line(variable, record->line(bytes, seconds_since(record->opened().began_ns)));
  return error;
}

// Only then is the time known since the library was loaded.
[[gnu::constructor]] void begin_run() {
  if (!environment(variable).empty()) run_began_ns = monotonic_ns();
}

#define PERDURE_NAME(x) constexpr char name_##x[] = #x;
PERDURE_CALLS_COUNTED(PERDURE_NAME)
#undef PERDURE_NAME

#define PERDURE_AT(x) observe<FileCalls::x>(Recorded<FileCalls::x, name_##x>::at);
#define PERDURE_HERE(x) observe<FileCalls::x>(Recorded<FileCalls::x, name_##x>::here);
#define PERDURE_END(x) observe<FileCalls::x>(split_end<FileCalls::x>);
#define PERDURE_AT_C(x) observe<FileCalls::x##_c>(Recorded<FileCalls::x##_c, name_##x>::at);
#define PERDURE_HERE_C(x) observe<FileCalls::x##_c>(Recorded<FileCalls::x##_c, name_##x>::here);

void observe_accesses() {
  PERDURE_CALLS_AT(PERDURE_AT)
  PERDURE_CALLS_IAT(PERDURE_AT)
  PERDURE_CALLS_AT_BEGIN(PERDURE_AT)
  PERDURE_CALLS_HERE(PERDURE_HERE)
  PERDURE_CALLS_IHERE(PERDURE_HERE)
  PERDURE_CALLS_HERE_BEGIN(PERDURE_HERE)
  PERDURE_CALLS_END(PERDURE_END)
#if MPI_VERSION >= 4
  PERDURE_CALLS_AT(PERDURE_AT_C)
  PERDURE_CALLS_IAT(PERDURE_AT_C)
  PERDURE_CALLS_AT_BEGIN(PERDURE_AT_C)
  PERDURE_CALLS_HERE(PERDURE_HERE_C)
  PERDURE_CALLS_IHERE(PERDURE_HERE_C)
  PERDURE_CALLS_HERE_BEGIN(PERDURE_HERE_C)
#endif
}

}  // namespace

void record_file_calls() {
  if (environment(variable).empty()) return;
  counting_ns = clock_ns();
  observe_accesses();
  observe<FileCalls::open>(from_caller<open>);
  observe<FileCalls::close>(close);
  observe<FileCalls::set_view>(set_view);
  observe<FileCalls::sync>(other<FileCalls::sync, OtherCall::sync>);
  observe<FileCalls::set_size>(other<FileCalls::set_size, OtherCall::set_size>);
  observe<FileCalls::preallocate>(other<FileCalls::preallocate, OtherCall::preallocate>);
  observe<FileCalls::get_size>([](MPI_File file, MPI_Offset* bytes) {
    return FileCalls::get_size::next.load()(file, bytes);
  });
  observe<FileCalls::get_position>(
      [](MPI_File file, MPI_Offset* at) { return FileCalls::get_position::next.load()(file, at); });
}

}  // namespace perdure
