// SPDX-License-Identifier: BSD-3-Clause
//
// Files: opened, closed and deleted.
//
// A cached file is opened by the MPI library too, which checks the arguments, makes the file, keeps
// the error handler, the group and the hints, and deletes the file at its close if that was asked
// for. What it does not do any more is to transfer bytes.
#include <array>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/agreement.hpp"
#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "mpi/at_finalize.hpp"
#include "mpi/info.hpp"
#include "mpi/mpi_group.hpp"
#include "mpi/mpi_library.hpp"
#include "mpiio/data_access.hpp"
#include "mpiio/file_admin.hpp"
#include "mpiio/report.hpp"

namespace perdure {

FileTable file_table;

namespace {

std::atomic<int> open_count{0};

// "ufs:/scratch/a" names a driver of ROMIO. Those that are the kernel's file systems are ours too.
std::optional<std::string> kernel_path(const std::string& name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string::npos || colon < 2 || name.find('/') < colon) return name;
  const std::string driver = name.substr(0, colon);
  for (const char* known : {"ufs", "nfs", "xfs", "gpfs", "lustre", "panfs", "testfs"}) {
    if (driver == known) return name.substr(colon + 1);
  }
  return std::nullopt;
}

std::optional<std::string> absolute_path(const char* name) {
  const auto path = kernel_path(name);
  if (!path) return std::nullopt;
  char resolved[PATH_MAX];
  if (::realpath(path->c_str(), resolved) == nullptr) return std::nullopt;
  return std::string(resolved);
}

Result<std::optional<CacheEnvironment>> read_environment() {
  const char* text = std::getenv("PERDURE_CACHE");
  if (text == nullptr || *text == '\0') return std::optional<CacheEnvironment>();
  PERDURE_TRY_ASSIGN(auto parsed, parse_cache_environment(text));
  return std::optional<CacheEnvironment>(std::move(parsed));
}

Result<CacheOptions> read_options(const std::string& path, MPI_Info info) {
  PERDURE_TRY_ASSIGN(auto environment, read_environment());
  return choose_cache_options(read_info(info), environment, path);
}

// How the file is reached for fetching and writing back; nothing if it can't be.
std::optional<BackingFile::Access> backing_access(const std::string& path, int amode) {
  if ((amode & MPI_MODE_RDONLY) != 0) return BackingFile::Access::read;
  if (BackingFile::open(path, BackingFile::Access::read_write).ok()) {
    return BackingFile::Access::read_write;
  }
  auto file = BackingFile::open(path, BackingFile::Access::write);
  if (!file.ok()) return std::nullopt;
  auto bytes = file.value().size_bytes();
  if (!bytes.ok() || bytes.value() != 0) return std::nullopt;
  return BackingFile::Access::write;
}

// What a rank wants of a file, and what it can.
struct OpenRequest {
  Status status;
  bool wanted = false;
  bool possible = false;
  bool known = false;  // this process has the file cached already
  CacheOptions options;
  std::string path;
  BackingFile::Access access = BackingFile::Access::read;
};

OpenRequest make_request(const char* name, int amode, MPI_Info info) {
  OpenRequest request;
  const auto path = absolute_path(name);
  auto options = read_options(path.value_or(name), info);
  request.status = options.status();
  if (!options.ok()) return request;
  request.options = options.take();
  request.wanted = request.options.cached;
  if (!path) return request;
  request.path = *path;
  request.known = CachedFile::is_known(*path);
  if (!request.options.pool.empty() &&
      ((amode & MPI_MODE_SEQUENTIAL) != 0 || !backing_access(*path, amode))) {
    request.status = {Code::unsupported,
                      *path +
                          " can't be cached in this mode of access, and so not be "
                          "committed with a pool; open it for reading and writing, "
                          "or without perdure_cache_pool"};
    return request;
  }
  if ((!request.wanted && !request.known) || (amode & MPI_MODE_SEQUENTIAL) != 0) return request;
  const auto access = backing_access(*path, amode);
  request.possible = access.has_value();
  if (access) request.access = *access;
  return request;
}

// The pool itself, as each pretended node has a directory of its own.
std::string pool_of(const CacheOptions& options) {
  const Pool* const pool = options.pool.empty() ? nullptr : Pool::find(options.pool);
  return pool == nullptr ? options.pool : job_id_text(pool->job_id());
}

// Of the options that must be the same on all ranks.
std::uint64_t digest(const OpenRequest& request) {
  const CacheOptions& options = request.options;
  const std::string text = options.directory + ";" +
                           std::to_string(static_cast<int>(options.layout)) + ";" +
                           std::to_string(options.block_bytes) + ";" +
                           std::to_string(static_cast<int>(options.fetch)) + ";" + pool_of(options);
  return crc64(text.data(), text.size());
}

enum class Verdict { pass, cache, refuse };

// Collective over the program's communicator, once for every file that is opened. A file is cached
// if all ranks want it and can, or if it is cached already by one of them: two ways to one file
// would not see each other's bytes.
Verdict judge(const OpenRequest& request, bool failed, MPI_Comm comm, Status& refusal) {
  const std::uint64_t own = digest(request);
  std::array<std::uint64_t, 8> seen = {failed,        request.wanted,      !request.wanted,
                                       request.known, !request.possible,   own,
                                       ~own,          !request.status.ok()};
  const int error = max_over_ranks(comm, seen);
  if (error != MPI_SUCCESS || seen[0] != 0) return Verdict::pass;
  if (seen[7] != 0) {
    refusal = !request.status.ok()
                  ? request.status
                  : Status(Code::peer_failed, "the hints of another rank are wrong");
    return Verdict::refuse;
  }
  const bool known = seen[3] != 0;
  if (seen[1] == 0 && !known) return Verdict::pass;
  if (seen[2] != 0 && !known) {
    refusal = {Code::invalid_argument,
               request.path +
                   ": some ranks ask for the cache and others do not; give all of them the "
                   "same hints and the same PERDURE_CACHE"};
    return Verdict::refuse;
  }
  if (!known && (seen[5] != own || seen[6] != ~own)) {
    refusal = {Code::invalid_argument,
               request.path +
                   ": the ranks give different perdure_cache hints; pool, layout, block, "
                   "fetch and group must be the same"};
    return Verdict::refuse;
  }
  if (seen[4] == 0) return Verdict::cache;
  if (!known) return Verdict::pass;
  refusal = {Code::busy, request.path +
                             " is cached by another handle, and can't be in this mode of "
                             "access; close that handle first"};
  return Verdict::refuse;
}

// Collective. The slot of a new shared pointer, which rank 0 takes for all.
Result<int> take_shared_pointer(MpiGroup& group, CachedFile& file) {
  int slot = -1;
  Status status;
  if (group.rank() == 0) {
    auto taken = file.take_pointer();
    status = taken.status();
    if (taken.ok()) slot = taken.value();
  }
  PERDURE_TRY(agree(group, status));
  const int error = PMPI_Bcast(&slot, sizeof slot, type_byte(), 0, group.comm());
  if (error != MPI_SUCCESS) return mpi_status("MPI_Bcast", error);
  return slot;
}

// MPI_MODE_APPEND: all pointers begin at the end.
Status append(OpenFile& open) {
  auto size = open.file->size_bytes(0);
  PERDURE_TRY(agree(*open.group, size.status()));
  open.position = static_cast<std::int64_t>(size.value());
  Status stored;
  if (open.group->rank() == 0) {
    stored = open.file->store_pointer(open.shared_pointer, size.value());
  }
  return agree(*open.group, stored);
}

// Collective; everything but the table.
Result<std::unique_ptr<OpenFile>> open_cached(std::unique_ptr<MpiGroup> group,
                                              const OpenRequest& request, int amode,
                                              MPI_File handle) {
  auto open = std::make_unique<OpenFile>();
  PERDURE_TRY_ASSIGN(auto file,
                     CachedFile::open(*group, request.path, request.options, request.access));
  open->file = std::move(file);
  open->group = std::move(group);
  open->handle = handle;
  open->options = request.options;
  open->amode = amode;
  open->readable = (amode & (MPI_MODE_RDONLY | MPI_MODE_RDWR)) != 0;
  open->writable = (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
  open->opened_ns = monotonic_ns();
  auto slot = take_shared_pointer(*open->group, *open->file);
  Status ready = slot.status();
  if (slot.ok()) open->shared_pointer = slot.value();
  if (ready.ok() && (amode & MPI_MODE_APPEND) != 0) ready = append(*open);
  find_short_cut(*open);
  if (ready.ok()) return open;
  (void)CachedFile::close(open->file, *open->group, true);  // report the first failure
  return ready;
}

// A new handle has the error handler of MPI_FILE_NULL, for which Open MPI 4 can't be asked to call
// it: MPI_File_call_errhandler(MPI_FILE_NULL, …) ends the job.
int fail_open(MPI_File* file, const Status& status) {
  const int raised = raise_on_file(*file, status);
  FileCalls::close::real(file);
  return raised;
}

// Collective: gives up the shared pointer and the file; what it could not write back stays.
Status close_cached(OpenFile& open, bool discard) {
  Status given;
  if (open.group->rank() == 0) given = open.file->give_pointer(open.shared_pointer);
  const Status closed = CachedFile::close(open.file, *open.group, discard);
  report_file(open, closed);
  file_table.remove(open.handle);
  if (--open_count == 0) take_file_calls(false);
  return closed.ok() ? given : closed;
}

}  // namespace

int file_open(MPI_Comm comm, const char* name, int amode, MPI_Info info, MPI_File* file) {
  const int error = FileCalls::open::real(comm, name, amode, info, file);
  if (CallerScope::from_library()) return error;
  int kind = MPI_SUCCESS;
  PMPI_Error_class(error, &kind);
  if (kind == MPI_ERR_COMM || kind == MPI_ERR_ARG) return error;
  const OpenRequest request =
      error == MPI_SUCCESS ? make_request(name, amode, info) : OpenRequest();
  Status refusal;
  const Verdict verdict = judge(request, error != MPI_SUCCESS, comm, refusal);
  if (verdict == Verdict::pass) return error;
  if (verdict == Verdict::refuse) return fail_open(file, refusal);
  auto group = MpiGroup::create(comm);
  if (!group.ok()) return fail_open(file, group.status());
  at_finalize<CachedFile::close_forgotten>();
  auto open = open_cached(group.take(), request, amode, *file);
  if (!open.ok()) return fail_open(file, open.status());
  const Status added = file_table.add(*file, open.value().get());
  if (!added.ok()) return fail_open(file, added);
  if (open_count++ == 0) take_file_calls(true);
  (void)open.take().release();  // until file_close
  return MPI_SUCCESS;
}

int file_close(MPI_File* file) {
  OpenFile* known = find_file(*file);
  if (known == nullptr) return FileCalls::close::real(file);
  const std::unique_ptr<OpenFile> open(known);
  const bool discard = (open->amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
  const Status closed = close_cached(*open, discard);
  const int raised = closed.ok() ? MPI_SUCCESS : raise_on_file(*file, closed);
  const int error = FileCalls::close::real(file);
  return raised != MPI_SUCCESS ? raised : error;
}

// The file is used on, also one that is deleted at its close.
int leave_cache(OpenFile& known) {
  const std::unique_ptr<OpenFile> open(&known);
  const Status closed = close_cached(*open, false);
  return closed.ok() ? MPI_SUCCESS : raise_on_file(open->handle, closed);
}

// What a crash left behind of a file that is deleted is of no use any more.
int file_delete(const char* name, MPI_Info info) {
  const auto path = absolute_path(name);
  const int error = FileCalls::delete_::real(name, info);
  if (error != MPI_SUCCESS || !path || CallerScope::from_library()) return error;
  auto options = read_options(*path, info);
  if (!options.ok() || !options.value().cached) return error;
  const std::string& pool = options.value().directory;
  const std::string directory = pool.empty() ? default_part_directory() : pool;
  // If there is none, or a rank that has the file open uses it, there is nothing to do.
  (void)discard_part(directory, part_file_path(directory, *path));
  return error;
}

}  // namespace perdure
