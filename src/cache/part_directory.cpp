// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/checksum.hpp"
#include "base/files.hpp"
#include "pmem/file_device.hpp"

namespace perdure {
namespace {

constexpr const char* part_suffix = ".part";

struct BootId {
  std::uint64_t words[2] = {0, 0};
};

BootId boot_id() {
  BootId id;
  std::string text = read_kernel_text("/proc/sys/kernel/random/boot_id");
  std::erase_if(text, [](char letter) { return letter == '-' || letter == '\n'; });
  if (text.size() != 32) return id;
  id.words[0] = std::stoull(text.substr(0, 16), nullptr, 16);
  id.words[1] = std::stoull(text.substr(16), nullptr, 16);
  return id;
}

bool is_same_boot(const PartHeaderFormat& header) {
  static const BootId now = boot_id();
  return std::memcmp(header.boot, now.words, sizeof header.boot) == 0;
}

// Parts are read as truth, and written back to the user's files.
Trust trusted() {
  return trust_unless(false);
}

Result<Directory> open_directory(const std::string& directory, bool make) {
  return make ? Directory::make(directory, trusted()) : Directory::open(directory, trusted());
}

// C3. A directory that was removed while its lock was waited for is made anew.
Result<Directory> lock_directory(const std::string& directory, bool make) {
  while (true) {
    auto opened = open_directory(directory, make);
    if (!opened.ok()) {
      if (make && opened.status().code() == Code::not_found) continue;
      return opened;
    }
    while (::flock(opened.value().fd(), LOCK_EX) != 0) {
      if (errno != EINTR) return errno_status("lock directory " + directory, errno);
    }
    if (opened.value().exists()) return opened;
    if (!make) return Status(Code::not_found, directory + " does not exist");
  }
}

enum class Lock { shared, alone };

// Whether the lock was granted; it is not waited for.
Result<bool> try_lock(const FileHandle& handle, Lock lock, const std::string& path) {
  const int kind = lock == Lock::alone ? LOCK_EX : LOCK_SH;
  while (::flock(handle.fd(), kind | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return errno_status("lock " + path, errno);
  }
  return true;
}

Result<FileHandle> open_for_lock(const std::string& path) {
  return open_file(path, FileAccess::read_write, trusted());
}

std::string undo_path(const std::string& path) {
  return path + ".undo";
}

Result<std::unique_ptr<CachePart>> attach(const std::string& path) {
  FileDeviceOptions options;
  options.shared = true;
  options.trust = trusted();
  PERDURE_TRY_ASSIGN(auto device, open_file_device(path, options));
  auto part = CachePart::attach(std::move(device));
  if (!part.ok() || !part.value()->with_pool()) return part;
  PERDURE_TRY_ASSIGN(auto undo, open_file_device(undo_path(path), options));
  const UndoGeometry geometry = part.value()->undo_geometry();
  if (undo->size_bytes() < geometry.file_bytes()) {
    return Status(Code::damaged, undo_path(path) + " is truncated");
  }
  part.value()->set_undo_log(std::make_unique<UndoLog>(std::move(undo), geometry));
  return part;
}

constexpr int dying_wait_ms = 30000;

// Whether all who use a part, whose file is locked by somebody, are being killed. One that was sent
// SIGKILL does not look so between taking note of it and beginning to end, so it is asked twice.
bool all_are_dying(const FileHandle& handle, const std::string& path) {
  for (int times = 0; times < 2; ++times) {
    const auto part = attach(path);
    if (!part.ok()) return false;  // whoever uses it tells what is wrong with it
    if (part.value()->owners_life(handle) == OwnersLife::dying) return true;
    if (times == 0) ::usleep(2000);
  }
  return false;
}

// C4. Whether nobody uses the part any more; it is locked for this process alone then.
Result<bool> lock_alone(const FileHandle& handle, const std::string& path) {
  for (int waited_ms = 0;; ++waited_ms) {
    auto alone = try_lock(handle, Lock::alone, path);
    if (!alone.ok() || alone.value()) return alone;
    if (!all_are_dying(handle, path)) return false;
    if (waited_ms > dying_wait_ms) {
      return Status(Code::busy, path +
                                    " is held by processes that are being killed and do not "
                                    "end; try again when they are gone");
    }
    ::usleep(1000);
  }
}

// A part whose making was cut short has no header yet, and no byte of anybody.
bool is_unborn(const std::string& path) {
  const auto file = open_file(path, FileAccess::read, trusted());
  std::uint64_t magic = 0;
  return file.ok() && ::pread(file.value().fd(), &magic, sizeof magic, 0) >= 0 && magic == 0;
}

Status recover_from(CachePart& part, const BackingFile& backing,
                    const std::optional<PoolVersion>& version, WriteBackTally& tally) {
  const PartHeaderFormat& header = part.header();
  if (header.file_inode != backing.inode()) {
    return {Code::foreign, std::string(header.path) +
                               " was replaced by another file since its part was left behind in " +
                               part.device().describe().name +
                               "; put the old file back, or discard the part (`perdure cache "
                               "discard`)"};
  }
  part.set_backing(&backing);
  if (version) PERDURE_TRY(part.roll_back(*version));
  PERDURE_TRY_ASSIGN(tally, part.recover(is_same_boot(header)));
  return Status::success();
}

// The part first: an undo log without a part is nobody's.
Status remove_part(const std::string& path) {
  PERDURE_TRY(remove_file(path, trusted()));
  return remove_file(undo_path(path), trusted());
}

// The default directory goes when it is empty; a user's own stays.
void tidy_directory(const std::string& directory) {
  const std::string ours = default_part_directory();
  if (!directory.starts_with(ours)) return;
  if (directory != ours) remove_directory(directory);
  remove_directory(ours);
}

bool is_of_pool(const PartHeaderFormat& header, const PoolVersion& version) {
  return std::equal(version.job, version.job + 2, header.pool_job);
}

// C2, for a part that nobody uses.
Status recover_leftover(const std::string& file, const BackingFile& backing,
                        const std::optional<PoolVersion>& restored) {
  if (is_unborn(file)) return remove_part(file);
  auto part = attach(file);
  if (!part.ok()) {
    return {part.status().code(), part.status().message() + "; `perdure cache discard` removes it"};
  }
  const PartHeaderFormat& header = part.value()->header();
  std::optional<PoolVersion> version;
  if (part.value()->with_pool()) {
    if (!restored || !is_of_pool(header, *restored)) {
      return {Code::wrong_state, std::string(header.path) + " was committed with the pool " +
                                     header.pool +
                                     " when its job ended; open it with perdure_cache_pool of "
                                     "that pool, or use `perdure cache recover`"};
    }
    version = restored;
  }
  WriteBackTally tally;
  PERDURE_TRY(recover_from(*part.value(), backing, version, tally));
  part.value().reset();
  return remove_part(file);
}

Result<PartGeometry> choose_geometry(const PartRequest& request) {
  struct statvfs space{};
  if (::statvfs(request.directory.c_str(), &space) != 0) {
    return errno_status("statvfs " + request.directory, errno);
  }
  const Layout& layout = request.identity.layout;
  const std::uint64_t free_bytes =
      static_cast<std::uint64_t>(space.f_bavail) * static_cast<std::uint64_t>(space.f_frsize);
  PartGeometry geometry;
  const std::uint64_t fixed = part_file_bytes(layout, geometry);
  const std::uint64_t each = layout.block_bytes + sizeof(BlockFormat);
  geometry.blocks = free_bytes > fixed ? (free_bytes - fixed) / each : 0;
  // Addresses are reserved for it: at most half of what a process may have on any processor.
  geometry.blocks = std::min(geometry.blocks, (std::uint64_t{1} << 44) / layout.block_bytes);
  const std::uint64_t needed = part_blocks_for(layout, request.identity.node, request.file_bytes);
  if (geometry.blocks < std::max<std::uint64_t>(needed, 1)) {
    return Status(
        Code::no_space,
        request.identity.path + " has " + std::to_string(request.file_bytes) +
            " bytes, of which node " + std::to_string(request.identity.node) + " of " +
            std::to_string(layout.nodes) + " is to keep " +
            std::to_string(needed * layout.block_bytes) + "; " + request.directory +
            " has room for " + std::to_string(geometry.blocks * layout.block_bytes) +
            "; choose a larger device (perdure_cache_directory), or do not cache the file");
  }
  return geometry;
}

Result<OpenPart> open_locked(const std::string& directory, const std::string& file, bool joined) {
  PERDURE_TRY_ASSIGN(auto handle, open_for_lock(file));
  PERDURE_TRY_ASSIGN(auto locked, try_lock(handle, Lock::shared, file));
  if (!locked) return Status(Code::busy, file + " is being recovered by another process");
  PERDURE_TRY_ASSIGN(auto part, attach(file));
  // The same open file description: it is closed when this process has ended.
  FileHandle own(::fcntl(handle.fd(), F_DUPFD_CLOEXEC, 0));
  if (own.fd() < 0) return errno_status("duplicate the descriptor of " + file, errno);
  PERDURE_TRY(part->join_owners(std::move(own)));
  return OpenPart{std::move(part), std::move(handle), directory, file, joined};
}

Status create_undo(const std::string& path, const PartGeometry& geometry,
                   const PartIdentity& identity) {
  PERDURE_TRY(remove_file(path, trusted()));
  FileDeviceOptions options;
  options.create = true;
  options.shared = true;
  options.trust = trusted();
  options.sparse_bytes = UndoGeometry{geometry.blocks, identity.layout.block_bytes}.file_bytes();
  return open_file_device(path, options).status();
}

Result<OpenPart> create_part(const PartRequest& request, const std::string& file,
                             const BackingFile& backing) {
  PERDURE_TRY_ASSIGN(auto geometry, choose_geometry(request));
  PartIdentity identity = request.identity;
  const BootId boot = boot_id();
  std::copy_n(boot.words, 2, identity.boot);
  FileDeviceOptions options;
  options.create = true;
  options.shared = true;
  options.trust = trusted();
  options.sparse_bytes = part_file_bytes(identity.layout, geometry);
  PERDURE_TRY_ASSIGN(auto device, open_file_device(file, options));
  Status made = Status::success();
  if (identity.pool_job[0] != 0) made = create_undo(undo_path(file), geometry, identity);
  if (made.ok()) {
    made = CachePart::format(*device, identity, geometry, request.file_bytes);
  }
  if (!made.ok()) {
    (void)remove_part(file);  // report the first failure
    return made;
  }
  auto open = open_locked(request.directory, file, false);
  if (open.ok()) open.value().part->set_backing(&backing);
  if (open.ok() && request.restored) {
    const std::uint64_t version = request.restored->version;
    PERDURE_TRY(open.value().part->set_base_version(version, request.file_bytes).status());
  }
  return open;
}

Status can_join(const CachePart& part, const PartRequest& request) {
  if (part.header().file_inode != request.identity.file_inode) {
    return {Code::busy, request.identity.path +
                            " was replaced by another file while the one before it is open and "
                            "cached; close that one first"};
  }
  if (std::memcmp(part.header().pool_job, request.identity.pool_job,
                  sizeof request.identity.pool_job) != 0) {
    return {Code::busy, request.identity.path +
                            " is open with another perdure_cache_pool, or without; give the same "
                            "hint, or close it there first"};
  }
  if (part.header().nodes == 1 && request.identity.layout.nodes == 1) return Status::success();
  return {Code::busy, request.identity.path +
                          " is cached by processes on several nodes that are not all part of "
                          "this communicator; open it by all of them, or close it first, or "
                          "open it with perdure_cache=off when they have synchronised it"};
}

}  // namespace

std::string default_part_directory() {
  return "/dev/shm/perdure-cache-" + std::to_string(::getuid());
}

std::string part_file_path(const std::string& directory, const std::string& path) {
  char name[40];
  std::snprintf(name, sizeof name, "%016" PRIx64 "%s", crc64(path.data(), path.size()),
                part_suffix);
  return directory + "/" + name;
}

namespace {

// A part that was left behind, and that is locked for this process alone.
struct Claimed {
  Directory directory;
  FileHandle lock;
  std::string file;
};

// Empty: there is none, or others use it.
Result<std::optional<Claimed>> claim_part(const std::string& directory, const std::string& path,
                                          bool& used) {
  used = false;
  auto locked = lock_directory(directory, false);
  if (locked.status().code() == Code::not_found) return std::optional<Claimed>();
  if (!locked.ok()) return locked.status();
  const std::string file = part_file_path(directory, path);
  auto there = open_for_lock(file);
  if (there.status().code() == Code::not_found) return std::optional<Claimed>();
  if (!there.ok()) return there.status();
  PERDURE_TRY_ASSIGN(auto alone, lock_alone(there.value(), file));
  used = !alone;
  if (used) return std::optional<Claimed>();
  return std::optional<Claimed>(Claimed{locked.take(), there.take(), file});
}

// Calls `body` with the part that is left behind; there is one.
template <typename Body>
Status with_leftover(const std::string& directory, const std::string& path, const Body& body) {
  bool used = false;
  PERDURE_TRY_ASSIGN(const auto claimed, claim_part(directory, path, used));
  if (!claimed) return {Code::not_found, "the part of " + path + " in " + directory + " is gone"};
  PERDURE_TRY_ASSIGN(auto part, attach(claimed->file));
  return body(claimed->file, std::move(part));
}

}  // namespace

Status recover_leftover_part(const std::string& directory, const std::string& path,
                             const BackingFile& backing,
                             const std::optional<PoolVersion>& restored) {
  bool used = false;
  PERDURE_TRY_ASSIGN(const auto claimed, claim_part(directory, path, used));
  return claimed ? recover_leftover(claimed->file, backing, restored) : Status::success();
}

Result<Leftover> look_at_leftover(const std::string& directory, const std::string& path,
                                  const PoolVersion& version) {
  bool used = false;
  PERDURE_TRY_ASSIGN(const auto claimed, claim_part(directory, path, used));
  if (!claimed) return used ? Leftover::used : Leftover::none;
  if (is_unborn(claimed->file)) return Leftover::other;
  const auto part = attach(claimed->file);
  if (!part.ok() || !is_of_pool(part.value()->header(), version)) return Leftover::other;
  return holds_version(part.value()->fact(), version) ? Leftover::fits : Leftover::stale;
}

Status write_leftover(const std::string& directory, const std::string& path,
                      const BackingFile& backing, const PoolVersion& version) {
  return with_leftover(directory, path, [&](const std::string&, auto part) {
    WriteBackTally tally;
    return recover_from(*part, backing, version, tally);
  });
}

// Not in use any more, before it is removed: part_facts.hpp, F1.
Status release_leftover(const std::string& directory, const std::string& path) {
  return with_leftover(directory, path,
                       [](const std::string&, auto part) { return part->set_in_use(false); });
}

Status discard_leftover(const std::string& directory, const std::string& path,
                        const PoolVersion& version) {
  return with_leftover(directory, path, [&](const std::string& file, auto part) -> Status {
    if (!is_of_pool(part->header(), version)) return Status::success();
    part.reset();
    return remove_part(file);
  });
}

namespace {

// P10.
Status check_joined(OpenPart& open, const PartRequest& request) {
  PERDURE_TRY(can_join(*open.part, request));
  return open.part->clean_up_after_dead();
}

// P11, of a part that nobody uses any more: what others left behind goes to the cached file. False:
// it is left to recovery.
Result<bool> finish_for_dead(CachePart& part) {
  if (!part.any_left_behind()) return true;
  const BackingFile* backing = part.backing();
  if (part.with_pool() || backing == nullptr) return false;
  if (backing->access() == BackingFile::Access::read) return false;
  PERDURE_TRY(part.recover(true).status());
  return true;
}

}  // namespace

Result<OpenPart> make_part(const PartRequest& request, const BackingFile& backing) {
  PERDURE_TRY_ASSIGN(auto directory, lock_directory(request.directory, true));
  const std::string file = part_file_path(request.directory, request.identity.path);
  auto there = open_for_lock(file);
  if (there.status().code() == Code::not_found) return create_part(request, file, backing);
  if (!there.ok()) return there.status();
  PERDURE_TRY_ASSIGN(auto alone, try_lock(there.value(), Lock::alone, file));
  if (alone) {
    return Status(Code::busy, file + " was left behind a moment ago; open " +
                                  request.identity.path + " again to recover it");
  }
  auto open = open_locked(request.directory, file, true);
  if (!open.ok()) return open;
  open.value().part->set_backing(&backing);
  PERDURE_TRY(check_joined(open.value(), request));
  return open;
}

Result<OpenPart> join_part(const std::string& directory, const std::string& path) {
  return open_locked(directory, part_file_path(directory, path), true);
}

void drop_part(OpenPart open) {
  open.part.reset();  // O1: before the lock goes
}

Status leave_part(OpenPart open, bool keep) {
  PERDURE_TRY_ASSIGN(auto directory, lock_directory(open.directory, false));
  open.part->leave_owners();
  PERDURE_TRY_ASSIGN(auto alone, lock_alone(open.lock, open.path));
  if (!alone || keep) return Status::success();
  PERDURE_TRY_ASSIGN(auto finished, finish_for_dead(*open.part));
  if (!finished) return Status::success();
  open.part.reset();
  PERDURE_TRY(remove_part(open.path));
  tidy_directory(open.directory);
  return Status::success();
}

Result<std::vector<FoundPart>> list_parts(const std::string& directory) {
  PERDURE_TRY_ASSIGN(auto locked, lock_directory(directory, false));
  std::vector<FoundPart> found;
  PERDURE_TRY_ASSIGN(auto names, locked.names());
  for (const std::string& name : names) {
    if (!name.ends_with(part_suffix)) continue;
    FoundPart part;
    part.file = directory + "/" + name;
    auto handle = open_for_lock(part.file);
    if (handle.ok()) {
      auto alone = try_lock(handle.value(), Lock::alone, part.file);
      part.in_use = alone.ok() && !alone.value() && !all_are_dying(handle.value(), part.file);
    }
    auto opened = attach(part.file);
    part.fault = opened.status();
    if (opened.ok()) {
      const PartHeaderFormat& header = opened.value()->header();
      part.path = header.path;
      part.pool = header.pool;
      part.node = header.node;
      part.nodes = header.nodes;
      part.created_ns = header.created_ns;
      part.same_boot = is_same_boot(header);
      part.size_bytes = opened.value()->size_bytes();
      part.unsaved_bytes = opened.value()->unsaved_bytes(part.same_boot);
    }
    found.push_back(std::move(part));
  }
  return found;
}

namespace {

// The part's file, locked: nobody uses it.
Result<FileHandle> claim_leftover(const std::string& file) {
  PERDURE_TRY_ASSIGN(auto handle, open_for_lock(file));
  PERDURE_TRY_ASSIGN(auto alone, lock_alone(handle, file));
  if (!alone) {
    return Status(Code::busy, file + " is in use by a running program; wait until it has ended");
  }
  return handle;
}

}  // namespace

Result<WriteBackTally> recover_part(const std::string& directory, const std::string& file,
                                    std::optional<std::uint64_t> version) {
  PERDURE_TRY_ASSIGN(auto locked, lock_directory(directory, false));
  PERDURE_TRY_ASSIGN(auto claimed, claim_leftover(file));
  WriteBackTally tally;
  if (is_unborn(file)) {  // of a job that was killed while it opened the file
    PERDURE_TRY(remove_part(file));
    tidy_directory(directory);
    return tally;
  }
  PERDURE_TRY_ASSIGN(auto part, attach(file));
  PERDURE_TRY_ASSIGN(auto backing,
                     BackingFile::open(part->header().path, BackingFile::Access::read_write));
  std::optional<PoolVersion> restored;
  if (part->with_pool() && version) restored = PoolVersion{{0, 0}, *version, 0, 0};
  PERDURE_TRY(recover_from(*part, backing, restored, tally));
  part.reset();
  PERDURE_TRY(remove_part(file));
  tidy_directory(directory);
  return tally;
}

Status discard_part(const std::string& directory, const std::string& file) {
  PERDURE_TRY_ASSIGN(auto locked, lock_directory(directory, false));
  PERDURE_TRY_ASSIGN(auto claimed, claim_leftover(file));
  PERDURE_TRY(remove_part(file));
  tidy_directory(directory);
  return Status::success();
}

}  // namespace perdure
