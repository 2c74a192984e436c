// SPDX-License-Identifier: BSD-3-Clause
//
// Files: opened, closed and deleted.
//
// A cached file is opened by the MPI library too, which checks the arguments, makes the file, keeps
// the error handler, the group and the hints, and deletes the file at its close if that was asked
// for. What it does not do any more is to transfer bytes.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/agreement.hpp"
#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "cache/pool_parts.hpp"
#include "mpi/info.hpp"
#include "mpi/mpi_group.hpp"
#include "mpi/mpi_library.hpp"
#include "mpiio/data_access.hpp"
#include "mpiio/file_admin.hpp"
#include "mpiio/file_ends.hpp"
#include "mpiio/report.hpp"
#include "pool/file_recovery.hpp"

namespace perdure {

FileTable file_table;

namespace {

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

// As it is written, if realpath(3) would leave it as it is where no name in it is a link.
std::optional<std::string> written_path(const char* name) {
  auto path = kernel_path(name);
  if (!path || path->empty()) return std::nullopt;
  if (path->front() != '/') {
    char directory[PATH_MAX];
    if (::getcwd(directory, sizeof directory) == nullptr) return std::nullopt;
    path = std::string(directory) + '/' + *path;
  }
  for (std::size_t slash = 0; slash != std::string::npos;) {
    const std::size_t next = path->find('/', slash + 1);
    const auto part = std::string_view(*path).substr(slash + 1, next - slash - 1);
    if (part.empty() || part == "." || part == "..") return std::nullopt;
    slash = next;
  }
  return path;
}

std::optional<std::string> absolute_path(const char* name) {
  const auto path = kernel_path(name);
  if (!path) return std::nullopt;
  char resolved[PATH_MAX];
  if (::realpath(path->c_str(), resolved) == nullptr) return std::nullopt;
  return std::string(resolved);
}

Result<CacheOptions> read_options(const std::string& path, MPI_Info info) {
  PERDURE_TRY_ASSIGN(auto environment, read_cache_environment());
  return choose_cache_options(read_info(info), environment.get(), path);
}

// The file as it is reached for fetching and writing back; nothing if it can't be.
std::optional<BackingFile> open_backing(const std::string& path, int amode, Links links) {
  const auto opened = [&](BackingFile::Access access) -> std::optional<BackingFile> {
    auto file = BackingFile::open(path, access, links);
    return file.ok() ? std::optional<BackingFile>(file.take()) : std::nullopt;
  };
  if ((amode & MPI_MODE_RDONLY) != 0) return opened(BackingFile::Access::read);
  if (auto file = opened(BackingFile::Access::read_write)) return file;
  auto file = opened(BackingFile::Access::write);
  if (!file) return std::nullopt;
  auto bytes = file->size_bytes();
  if (!bytes.ok() || bytes.value() != 0) return std::nullopt;
  return file;
}

// What a rank wants of a file, and what it can.
struct OpenRequest {
  Status status;
  bool wanted = false;
  bool possible = false;
  bool known = false;  // this process has the file cached already
  CacheOptions options;
  std::string path;
  std::optional<BackingFile> backing;     // if it is possible
  std::optional<FileAside::Claim> aside;  // if it may begin aside, as far as this rank knows
};

// See file_aside.hpp.
bool may_begin_aside(const OpenRequest& request) {
  return request.wanted && request.possible && !request.known && may_stand_aside(request.options) &&
         request.backing->access() != BackingFile::Access::write;
}

// Where a table can't be had, files are cached from the first byte; what is wrong with the
// directory is reported then.
std::optional<FileAside::Claim> claim_aside(const OpenRequest& request) {
  if (!may_begin_aside(request)) return std::nullopt;
  const CacheOptions& options = request.options;
  const BackingFile& backing = *request.backing;
  PartRequest part;
  auto directory = aside_directory(options);
  if (!directory) return std::nullopt;
  part.directory = std::move(*directory);
  part.identity.path = request.path;
  part.identity.file_device = backing.device();
  part.identity.file_inode = backing.inode();
  part.identity.layout = make_layout(options.layout, 1, options.block_bytes, 0);
  auto table = AsideTable::of(part.directory);
  if (!table.ok()) return std::nullopt;
  auto entry =
      table.value()->enter(backing.device(), backing.inode(), part_file_name(request.path));
  if (!entry.ok() || !entry.value()) return std::nullopt;
  return FileAside::Claim{std::move(*entry.value()), std::move(part), options.from,
                          terms_of(options)};
}

bool is_known(const OpenRequest& request) {
  if (request.backing) {
    return CachedFile::is_known(request.backing->device(), request.backing->inode());
  }
  struct stat status{};
  return CachedFile::is_any_known() && ::stat(request.path.c_str(), &status) == 0 &&
         CachedFile::is_known(status.st_dev, status.st_ino);
}

OpenRequest request_of(const std::optional<std::string>& path, Links links, const char* name,
                       int amode, MPI_Info info) {
  OpenRequest request;
  auto options = read_options(path.value_or(name), info);
  request.status = options.status();
  if (!options.ok()) return request;
  request.options = options.take();
  request.wanted = request.options.cached;
  if (!path) return request;
  request.path = *path;
  const bool with_pool = !request.options.pool.empty();
  const bool sequential = (amode & MPI_MODE_SEQUENTIAL) != 0;
  if (!sequential && (with_pool || request.wanted))
    request.backing = open_backing(*path, amode, links);
  request.known = is_known(request);
  if (!sequential && request.known && !request.backing) {
    request.backing = open_backing(*path, amode, links);
  }
  if (with_pool && !request.backing) {
    request.status =
        Status(Code::unsupported, *path,
               " can't be cached in this mode of access, and so not be committed with a pool; open "
               "it for reading and writing, or without perdure_cache_pool");
    return request;
  }
  request.possible = request.backing.has_value() && (request.wanted || request.known);
  // Made anew under the name of one that is open, it is left to the MPI library.
  if (request.possible && !request.known && !with_pool) {
    request.possible =
        !CachedFile::is_path_taken(*path, request.backing->device(), request.backing->inode());
  }
  if (request.possible) request.aside = claim_aside(request);
  return request;
}

// To find links one asks for each name of a path, which takes longer than to open the file.
OpenRequest make_request(const char* name, int amode, MPI_Info info) {
  if (const auto path = written_path(name)) {
    OpenRequest request = request_of(path, Links::refused, name, amode, info);
    if (request.backing) return request;
  }
  return request_of(absolute_path(name), Links::followed, name, amode, info);
}

// The pool itself, as each pretended node has a directory of its own.
std::string pool_of(const CacheOptions& options) {
  const Pool* const pool = options.pool.empty() ? nullptr : Pool::find(options.pool);
  return pool == nullptr ? options.pool : job_id_text(pool->job_id());
}

// Of the options that must be the same on all ranks.
std::uint64_t digest(const OpenRequest& request) {
  const CacheOptions& options = request.options;
  const std::string text =
      sentence(options.directory, ";", static_cast<int>(options.layout), ";", options.block_bytes,
               ";", static_cast<int>(options.fetch), ";", pool_of(options));
  return crc64(text.data(), text.size());
}

enum class Verdict { pass, cache, refuse };

// What the ranks' claims come to: they count if all ranks have one in the same table.
struct Claims {
  std::uint64_t table = 0;
  std::uint64_t other_table = ~std::uint64_t{0};
  std::uint64_t pointer = 0;  // the entry of rank 0, whose pointer the handle has, and 1

  bool count() const { return table != 0 && table == ~other_table; }
};

Claims own_claim(const OpenRequest& request, MPI_Comm comm) {
  Claims own;
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (!request.aside) return own;
  own.table = request.aside->entry.table().id();
  own.other_table = ~own.table;
  if (rank == 0) own.pointer = request.aside->entry.number() + 1;
  return own;
}

// Collective over the program's communicator, once for every file that is opened. A file is cached
// if all ranks want it and can, or if it is cached already by one of them: two ways to one file
// would not see each other's bytes.
Verdict judge(const OpenRequest& request, bool failed, MPI_Comm comm, Claims& claims,
              Status& refusal) {
  const std::uint64_t own = digest(request);
  claims = own_claim(request, comm);
  std::array<std::uint64_t, 11> seen = {
      failed, request.wanted,       !request.wanted, request.known,      !request.possible, own,
      ~own,   !request.status.ok(), claims.table,    claims.other_table, claims.pointer};
  const int error = max_over_ranks(comm, seen);
  if (error != MPI_SUCCESS || seen[0] != 0) return Verdict::pass;
  claims = {seen[8], seen[9], seen[10]};
  if (seen[7] != 0) {
    refusal = !request.status.ok()
                  ? request.status
                  : Status(Code::peer_failed, "the hints of another rank are wrong");
    return Verdict::refuse;
  }
  const bool known = seen[3] != 0;
  if (seen[1] == 0 && !known) return Verdict::pass;
  if (seen[2] != 0 && !known) {
    refusal = Status(Code::invalid_argument, request.path,
                     ": some ranks ask for the cache and others do not; give all of them the same "
                     "hints and the same PERDURE_CACHE");
    return Verdict::refuse;
  }
  if (!known && (seen[5] != own || seen[6] != ~own)) {
    refusal = Status(Code::invalid_argument, request.path,
                     ": the ranks give different perdure_cache hints; pool, layout, block, fetch "
                     "and group must be the same");
    return Verdict::refuse;
  }
  if (seen[4] == 0) return Verdict::cache;
  if (!known) return Verdict::pass;
  refusal = Status(
      Code::busy, request.path,
      " is cached by another handle, and can't be in this mode of access; close that handle first");
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

// Collective.
Result<std::shared_ptr<CachedFile>> open_file(MpiGroup& group, OpenRequest& request,
                                              const Claims& claims) {
  if (!claims.count()) {
    request.aside.reset();
    return CachedFile::open(group, request.path, request.options, request.backing->access());
  }
  return CachedFile::open_aside(std::move(*request.backing), std::move(*request.aside),
                                group.rank(), group.ranks());
}

// Collective; everything but the table.
Result<std::unique_ptr<OpenFile>> open_cached(std::shared_ptr<MpiGroup> group, OpenRequest& request,
                                              const Claims& claims, int amode, MPI_File handle) {
  const CollectiveCall call(*group, "MPI_File_open");
  auto open = std::make_unique<OpenFile>();
  open->number = group->call().count + 1;
  PERDURE_TRY_ASSIGN(open->file, open_file(*group, request, claims));
  open->group = group;
  open->handle = handle;
  open->options = std::move(request.options);
  open->amode = amode;
  open->readable = (amode & (MPI_MODE_RDONLY | MPI_MODE_RDWR)) != 0;
  open->writable = (amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
  open->opened_ns = monotonic_ns();
  Status ready;
  if (claims.count()) {
    open->shared_pointer = FileAside::pointer_slot(static_cast<std::uint32_t>(claims.pointer - 1));
  } else {
    auto slot = take_shared_pointer(*open->group, *open->file);
    ready = slot.status();
    if (slot.ok()) open->shared_pointer = slot.value();
  }
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
  note_closed(open);
  return closed.ok() ? given : closed;
}

}  // namespace

namespace {

Status recover_files_of(const std::string& pool, const JobId& job, std::uint64_t version,
                        std::uint64_t incarnation) {
  PoolVersion of;
  std::copy_n(job.words, 2, of.job);
  of.version = version;
  of.incarnation = incarnation;
  return recover_pool_parts(pool, of);
}

[[gnu::constructor]] void offer_recovery() {
  set_file_recovery(recover_files_of);
}

}  // namespace

int file_open(MPI_Comm comm, const char* name, int amode, MPI_Info info, MPI_File* file) {
  const int error = FileCalls::open::real(comm, name, amode, info, file);
  if (CallerScope::from_library()) return error;
  int kind = MPI_SUCCESS;
  PMPI_Error_class(error, &kind);
  if (kind == MPI_ERR_COMM || kind == MPI_ERR_ARG) return error;
  OpenRequest request = error == MPI_SUCCESS ? make_request(name, amode, info) : OpenRequest();
  Status refusal;
  Claims claims;
  const Verdict verdict = judge(request, error != MPI_SUCCESS, comm, claims, refusal);
  if (verdict == Verdict::pass) return error;
  if (verdict == Verdict::refuse) return fail_open(file, refusal);
  auto group = MpiGroup::shared(comm);
  if (!group.ok()) return fail_open(file, group.status());
  end_files_with_process();
  end_files_before_library();
  auto open = open_cached(group.take(), request, claims, amode, *file);
  if (!open.ok()) return fail_open(file, open.status());
  const Status added = file_table.add(*file, open.value().get());
  if (!added.ok()) return fail_open(file, added);
  take_file_calls();
  note_opened(*open.value());
  // What others write to this node is to be handed over, too.
  if (open.value()->file->nodes() > 1) write_early(*open.value());
  (void)open.take().release();  // until file_close
  return MPI_SUCCESS;
}

int file_close(MPI_File* file) {
  OpenFile* known = find_file(*file);
  if (known == nullptr) return FileCalls::close::real(file);
  const std::shared_ptr<MpiGroup> group = known->group;  // outlives the file
  const CollectiveCall call(*group, "MPI_File_close", known->number);
  if (Status all = agree(*group, Status::success()); !all.ok()) {
    return raise_on_file(*file, all);
  }
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
