// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_directory.hpp"

#include <fcntl.h>
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
#include "cache/part_files.hpp"
#include "cache/part_note.hpp"
#include "cache/part_run_note.hpp"
#include "pmem/file_device.hpp"

namespace perdure {
namespace {

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
  const std::uint64_t of_file = part_blocks_for(layout, request.identity.node, request.file_bytes);
  const std::uint64_t needed = std::max<std::uint64_t>(of_file, 1);
  // Addresses are reserved for it: at most half of what a process may have on any processor.
  const std::uint64_t most = (std::uint64_t{1} << 44) / layout.block_bytes;
  geometry.blocks = std::min(geometry.blocks, most);
  const bool in_group = request.identity.pool_job[0] != 0;
  // cache.P16: any of the file's blocks may be among those that fit.
  if (!in_group) geometry.blocks = std::max(geometry.blocks, std::min(needed, most));
  if (geometry.blocks < needed && in_group) {
    return Status(Code::no_space, request.identity.path, " has ", request.file_bytes,
                  " bytes, of which node ", request.identity.node, " of ", layout.nodes,
                  " is to keep ", needed * layout.block_bytes, "; ", request.directory,
                  " has room for ", geometry.blocks * layout.block_bytes,
                  "; a file that is committed with a pool can't pass through, as it could not be "
                  "undone: choose a larger device, or open it without perdure_cache_pool");
  }
  return geometry;
}

Result<OpenPart> open_locked(const std::string& directory, const std::string& file, bool joined) {
  PERDURE_TRY_ASSIGN(auto handle, open_part_lock(file));
  PERDURE_TRY_ASSIGN(auto locked, try_lock_file(handle.fd(), FileLock::shared, file));
  if (!locked) return Status(Code::busy, file, " is being recovered by another process");
  PERDURE_TRY_ASSIGN(auto part, attach_part_file(file));
  // The same open file description: it is closed when this process has ended.
  FileHandle own(::fcntl(handle.fd(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (own.fd() < 0) return errno_status("duplicate the descriptor of " + file, errno);
  PERDURE_TRY(part->join_owners(std::move(own)));
  note_part_for_run(file, part->header().path);
  return OpenPart{std::move(part), std::move(handle), directory, file, joined};
}

FileDeviceOptions new_part_file(std::uint64_t bytes) {
  return {.create = true, .trust = part_trust(), .shared = true, .sparse_bytes = bytes};
}

Status create_undo(const std::string& path, const PartGeometry& geometry,
                   const PartIdentity& identity) {
  PERDURE_TRY(remove_file(path, part_trust()));
  const UndoGeometry undo{geometry.blocks, identity.layout.block_bytes};
  return open_file_device(path, new_part_file(undo.file_bytes())).status();
}

Result<OpenPart> create_part(const PartRequest& request, const std::string& file,
                             const BackingFile& backing) {
  PERDURE_TRY_ASSIGN(auto geometry, choose_geometry(request));
  PartIdentity identity = request.identity;
  const BootId boot = boot_id();
  std::copy_n(boot.words, 2, identity.boot);
  PERDURE_TRY_ASSIGN(identity.file_stamp, backing.stamp());
  const std::uint64_t bytes = part_file_bytes(identity.layout, geometry);
  PERDURE_TRY_ASSIGN(auto device, open_file_device(file, new_part_file(bytes)));
  Status made = Status::success();
  if (identity.pool_job[0] != 0) made = create_undo(undo_file_path(file), geometry, identity);
  if (made.ok()) {
    made = CachePart::format(*device, identity, geometry, request.file_bytes);
  }
  if (made.ok()) made = write_part_note(file, identity);
  if (!made.ok()) {
    (void)remove_part_files(file);  // report the first failure
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
    return Status(Code::busy, request.identity.path,
                  " was replaced by another file while the one before it is open and cached; close "
                  "that one first");
  }
  if (std::memcmp(part.header().pool_job, request.identity.pool_job,
                  sizeof request.identity.pool_job) != 0) {
    return Status(Code::busy, request.identity.path,
                  " is open with another perdure_cache_pool, or without; give the same hint, or "
                  "close it there first");
  }
  if (part.header().nodes == 1 && request.identity.layout.nodes == 1) return Status::success();
  return Status(Code::busy, request.identity.path,
                " is cached by processes on several nodes that are not all part of this "
                "communicator; open it by all of them, or close it first, or open it with "
                "perdure_cache=off when they have synchronised it");
}

}  // namespace

std::string default_part_directory() {
  return "/dev/shm/perdure-cache-" + std::to_string(::getuid());
}

std::string part_file_name(const std::string& path) {
  char name[40];
  std::snprintf(name, sizeof name, "%016" PRIx64 "%s", crc64(path.data(), path.size()),
                part_suffix);
  return name;
}

std::string part_file_path(const std::string& directory, const std::string& path) {
  return directory + "/" + part_file_name(path);
}

namespace {

// cache.P10.
Status check_joined(OpenPart& open, const PartRequest& request) {
  PERDURE_TRY(can_join(*open.part, request));
  return open.part->peers().clean_up_after_dead();
}

// cache.C6. Under the lock of the directory.
Result<OpenPart> make_new(const Directory& locked, PartRequest request, const std::string& file,
                          const BackingFile& backing) {
  const PartIdentity& identity = request.identity;
  const bool whole = identity.layout.nodes == 1 && identity.pool_job[0] == 0;
  PERDURE_TRY_ASSIGN(auto table, AsideTable::find(locked));
  PERDURE_TRY_ASSIGN(
      const auto making,
      AsideMaking::begin(std::move(table), {identity.file_device, identity.file_inode,
                                            identity.path, !whole, request.wait_ms}));
  if (whole) {
    PERDURE_TRY_ASSIGN(request.file_bytes, backing.size_bytes());
    Layout& layout = request.identity.layout;
    layout = make_layout(layout.kind, 1, layout.block_bytes, request.file_bytes);
  }
  return create_part(request, file, backing);
}

// cache.P11, of a part that nobody uses any more: what others left behind goes to the cached file.
// False: it is left to recovery.
Result<bool> finish_for_dead(CachePart& part) {
  if (!part.peers().any_left_behind()) return true;
  const BackingFile* backing = part.backing();
  if (part.with_pool() || backing == nullptr) return false;
  if (backing->access() == BackingFile::Access::read) return false;
  PERDURE_TRY(part.recover(true).status());
  return true;
}

}  // namespace

Result<OpenPart> make_part(const PartRequest& request, const BackingFile& backing) {
  PERDURE_TRY_ASSIGN(auto directory, lock_part_directory(request.directory, true));
  const std::string file = part_file_path(request.directory, request.identity.path);
  auto there = open_part_lock(file);
  if (there.status().code() == Code::not_found) {
    return make_new(directory, request, file, backing);
  }
  if (!there.ok()) return there.status();
  PERDURE_TRY_ASSIGN(auto alone, try_lock_file(there.value().fd(), FileLock::alone, file));
  if (alone) {
    return Status(Code::busy, file, " was left behind a moment ago; open ", request.identity.path,
                  " again to recover it");
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
  open.part.reset();  // cache.O1: before the lock goes
}

namespace {

enum class Seen : std::uint8_t { none, leftover, used };

// Under the lock of the directory. A part of another file with the same path does not count.
Result<Seen> look_at_part(const std::string& file, const PartRequest& request) {
  auto there = open_part_lock(file);
  if (there.status().code() == Code::not_found) return Seen::none;
  if (!there.ok()) return there.status();
  PERDURE_TRY_ASSIGN(auto alone, try_lock_file(there.value().fd(), FileLock::alone, file));
  if (alone && is_unborn(file)) return Seen::leftover;
  PERDURE_TRY_ASSIGN(const auto part, attach_part_file(file));
  if (part->header().file_inode != request.identity.file_inode) return Seen::none;
  return alone || part->owners_life(there.value()) == OwnersLife::dying ? Seen::leftover
                                                                        : Seen::used;
}

}  // namespace

Result<std::optional<OpenPart>> follow_part(const PartRequest& request, const BackingFile& backing,
                                            AsideEntry& entry) {
  const std::string file = part_file_path(request.directory, request.identity.path);
  while (true) {
    {
      PERDURE_TRY_ASSIGN(auto directory, lock_part_directory(request.directory, true));
      PERDURE_TRY_ASSIGN(const Seen seen, look_at_part(file, request));
      if (seen == Seen::none) {
        entry.stay();
        return std::optional<OpenPart>();
      }
      if (seen == Seen::used) {
        PERDURE_TRY_ASSIGN(auto open, open_locked(request.directory, file, true));
        open.part->set_backing(&backing);
        PERDURE_TRY(check_joined(open, request));
        return std::optional<OpenPart>(std::move(open));
      }
    }
    PERDURE_TRY(recover_leftover_part(request.directory, request.identity.path, backing, {}));
  }
}

Status leave_part(OpenPart open, bool keep) {
  PERDURE_TRY_ASSIGN(auto directory, lock_part_directory(open.directory, false));
  open.part->leave_owners();
  PERDURE_TRY_ASSIGN(auto alone, lock_part_alone(open.lock, open.path));
  if (!alone || keep) return Status::success();
  PERDURE_TRY_ASSIGN(auto finished, finish_for_dead(*open.part));
  if (!finished) return Status::success();
  open.part.reset();
  PERDURE_TRY(remove_part_files(open.path));
  tidy_part_directory(directory);
  return Status::success();
}

// The number of this process is cleaned up as that of a dead one (cache.P10): its threads may still
// have accesses under way, whose bytes nobody waits for.
Status leave_part_at_exit(const OpenPart& open) {
  PERDURE_TRY_ASSIGN(auto directory, lock_part_directory(open.directory, false));
  PERDURE_TRY_ASSIGN(auto alone, lock_part_alone(open.lock, open.path));
  if (!alone) {
    unlock_file(open.lock.fd());
    return Status::success();
  }
  PERDURE_TRY_ASSIGN(auto finished, finish_for_dead(*open.part));
  if (!finished) return Status::success();
  PERDURE_TRY(remove_part_files(open.path));
  tidy_part_directory(directory);
  return Status::success();
}

namespace {

// cache.P15. A file that is not there is another matter.
bool is_file_changed(const CachePart& part) {
  const auto backing = BackingFile::open(part.header().path, BackingFile::Access::read);
  if (!backing.ok() || backing.value().inode() != part.header().file_inode) return false;
  const auto seen = backing.value().stamp();
  return seen.ok() &&
         judge_file(part.changes().evidence(), seen.value(), is_same_boot(part.header()),
                    boot_time_ns()) == FileVerdict::changed;
}

}  // namespace

Result<std::vector<FoundPart>> list_parts(const std::string& directory) {
  PERDURE_TRY_ASSIGN(auto locked, lock_part_directory(directory, false));
  AsideTable::remove_unused(locked);
  std::vector<FoundPart> found;
  PERDURE_TRY_ASSIGN(auto names, locked.names());
  for (const std::string& name : names) {
    if (!name.ends_with(part_suffix)) continue;
    FoundPart part;
    part.file = directory + "/";
    part.file += name;
    auto handle = open_part_lock(part.file);
    if (handle.ok()) {
      auto alone = try_lock_file(handle.value().fd(), FileLock::alone, part.file);
      part.in_use = alone.ok() && !alone.value() && !all_are_dying(handle.value(), part.file);
    }
    auto opened = attach_part_file(part.file);
    part.fault = opened.status();
    if (opened.ok()) {
      const PartHeaderFormat& header = opened.value()->header();
      part.path = header.path;
      part.pool = header.pool;
      part.node = header.node;
      part.nodes = header.nodes;
      part.created_ns = header.created_ns;
      part.instance = header.instance[0];
      part.same_boot = is_same_boot(header);
      part.size_bytes = opened.value()->size_bytes();
      part.unsaved_bytes = opened.value()->unsaved_bytes(part.same_boot);
      part.through_bytes = opened.value()->through_bytes();
      part.evicted_bytes = opened.value()->evicted_bytes_of_all();
      part.file_changed = !part.in_use && is_file_changed(*opened.value());
    }
    found.push_back(std::move(part));
  }
  return found;
}

}  // namespace perdure
