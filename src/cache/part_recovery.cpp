// SPDX-License-Identifier: BSD-3-Clause
//
// Parts that were left behind: recovered at the next open of their file or by a user's command, or
// discarded (cache.C2, cache.C3; cache.P15 of part_contradiction.hpp).
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "cache/part_directory.hpp"
#include "cache/part_files.hpp"

namespace perdure {
namespace {

using Parts = std::vector<std::unique_ptr<CachePart>>;

bool is_of_pool(const PartHeaderFormat& header, const PoolVersion& version) {
  return std::equal(version.job, version.job + 2, header.pool_job);
}

// The remedy comes early: MPI cuts texts off, some libraries at 255 characters.
Status changed_file(const CachePart& part, const FileEvidence& evidence, const FileStamp& seen) {
  const std::uint32_t nodes = part.header().nodes;
  std::string text =
      std::string(part.header().path) + " was changed at " + utc_text(seen.changed_ns) +
      ", and not by its job: `perdure cache recover` has --to FILE, --keep-file and "
      "--overwrite-file; until then both are kept. The job's last change was at " +
      utc_text(evidence.recorded.changed_ns) + ". What it had is in " +
      part.device().describe().name + "; " + difference_text(evidence.recorded, seen);
  if (evidence.under_way) {
    text +=
        ". The job had begun a change when it ended: if that took longer than any before it, "
        "this may be it, and --overwrite-file is right";
  }
  if (nodes > 1) {
    text += ". Other nodes may have changed it as well: the parts of all " + std::to_string(nodes) +
            " nodes are recovered together by the next job that opens the file on them, or by one "
            "command that is given their directories";
  }
  return {Code::foreign, text};
}

Status replaced_file(const CachePart& part) {
  return Status(Code::foreign, part.header().path,
                " was replaced by another file since its part was left behind in ",
                part.device().describe().name,
                "; name the old file, wherever it is now (`perdure cache recover --to`), or "
                "discard the part (`perdure cache discard`)");
}

Status check_bytes(const Parts& parts, const BackingFile& backing, const FileEvidence& evidence,
                   const FileStamp& seen) {
  for (const auto& part : parts) {
    part->set_backing(&backing);
    PERDURE_TRY_ASSIGN(const bool contradicts, part->contradicts_file());
    if (contradicts) return changed_file(*part, evidence, seen);
  }
  return Status::success();
}

// cache.P15. Of parts of one file, on this machine, whose joined evidence this is.
Status check_evidence(const Parts& parts, const BackingFile& backing,
                      const FileEvidence& evidence) {
  const bool same_boot = is_same_boot(parts.front()->header());
  PERDURE_TRY_ASSIGN(const FileStamp seen, backing.stamp());
  const FileVerdict verdict = judge_file(evidence, seen, same_boot, boot_time_ns());
  if (verdict == FileVerdict::ours) return Status::success();
  if (verdict == FileVerdict::changed) return changed_file(*parts.front(), evidence, seen);
  // After another boot, what was not flushed says nothing.
  return same_boot ? check_bytes(parts, backing, evidence, seen) : Status::success();
}

Result<bool> is_ours(const CachePart& part, const BackingFile& backing) {
  PERDURE_TRY_ASSIGN(const FileStamp seen, backing.stamp());
  return judge_file(part.changes().evidence(), seen, is_same_boot(part.header()), boot_time_ns()) ==
         FileVerdict::ours;
}

// The same of all that one process knows. The record of any of them will do: it is not the file's
// stamp any more when another node, or somebody else, has changed the file since.
Status check_parts(const Parts& parts, const BackingFile& backing) {
  FileEvidence all = parts.front()->changes().evidence();
  for (const auto& part : parts) {
    PERDURE_TRY_ASSIGN(const bool ours, is_ours(*part, backing));
    if (ours) return Status::success();
    all = join_evidence(all, part->changes().evidence());
  }
  return check_evidence(parts, backing, all);
}

Status check_inode(const CachePart& part, const BackingFile& backing) {
  return part.header().file_inode == backing.inode() ? Status::success() : replaced_file(part);
}

// cache.P9, cache.P5 or cache.P7; the change stays under way (cache.P14), for as long as other
// parts have not done it.
Status write_from(CachePart& part, const BackingFile& backing,
                  const std::optional<PoolVersion>& version, WriteBackTally& tally) {
  part.set_backing(&backing);
  PERDURE_TRY(part.changes().begin());
  if (version) PERDURE_TRY(part.roll_back(*version));
  PERDURE_TRY_ASSIGN(const WriteBackTally written, part.recover(is_same_boot(part.header())));
  tally.bytes += written.bytes;
  tally.writes += written.writes;
  return Status::success();
}

// The version to which a part goes back; nothing if it is in no group.
Result<std::optional<PoolVersion>> version_for(const CachePart& part,
                                               const std::optional<PoolVersion>& restored) {
  const PartHeaderFormat& header = part.header();
  if (!part.with_pool()) return std::optional<PoolVersion>();
  if (restored && is_of_pool(header, *restored)) return restored;
  return Status(Code::wrong_state, header.path, " was committed with the pool ", header.pool,
                " when its job ended; open it with perdure_cache_pool of that pool, or use "
                "`perdure cache recover`");
}

// cache.C2, for a part that nobody uses.
Status recover_leftover(const std::string& file, const BackingFile& backing,
                        const std::optional<PoolVersion>& restored) {
  if (is_unborn(file)) return remove_part_files(file);
  auto attached = attach_part_file(file);
  if (!attached.ok()) {
    return {attached.status().code(),
            attached.status().message() + "; `perdure cache discard` removes it"};
  }
  Parts parts;
  parts.push_back(attached.take());
  CachePart& part = *parts.front();
  PERDURE_TRY_ASSIGN(const auto version, version_for(part, restored));
  if (version) PERDURE_TRY(part.check_goes_back(*version));
  PERDURE_TRY(check_inode(part, backing));
  PERDURE_TRY(check_parts(parts, backing));
  WriteBackTally tally;
  PERDURE_TRY(write_from(part, backing, version, tally));
  PERDURE_TRY(part.changes().forget_dead());
  parts.clear();
  return remove_part_files(file);
}

// A part that was left behind, and that is locked for this process alone.
struct Claimed {
  LockedDirectory directory;
  FileHandle lock;
  std::string file;
};

// Empty: there is none, or others use it.
Result<std::optional<Claimed>> claim_part(const std::string& directory, const std::string& path,
                                          bool& used) {
  used = false;
  auto locked = lock_part_directory(directory, false);
  if (locked.status().code() == Code::not_found) return std::optional<Claimed>();
  if (!locked.ok()) return locked.status();
  const std::string file = part_file_path(directory, path);
  auto there = open_part_lock(file);
  if (there.status().code() == Code::not_found) return std::optional<Claimed>();
  if (!there.ok()) return there.status();
  PERDURE_TRY_ASSIGN(auto alone, lock_part_alone(there.value(), file));
  used = !alone;
  if (used) return std::optional<Claimed>();
  return std::optional<Claimed>(Claimed{locked.take(), there.take(), file});
}

// Calls `body` with the part that is left behind; there is one.
template <typename Body>
Status with_leftover(const std::string& directory, const std::string& path, const Body& body) {
  bool used = false;
  PERDURE_TRY_ASSIGN(const auto claimed, claim_part(directory, path, used));
  if (!claimed) return Status(Code::not_found, "the part of ", path, " in ", directory, " is gone");
  PERDURE_TRY_ASSIGN(auto part, attach_part_file(claimed->file));
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
  const auto part = attach_part_file(claimed->file);
  if (!part.ok() || !is_of_pool(part.value()->header(), version)) return Leftover::other;
  return holds_version(part.value()->fact(), version) ? Leftover::fits : Leftover::stale;
}

Result<LeftoverEvidence> look_at_file(const std::string& directory, const std::string& path,
                                      const BackingFile& backing) {
  LeftoverEvidence found;
  const Status looked =
      with_leftover(directory, path, [&](const std::string&, auto part) -> Status {
        PERDURE_TRY(check_inode(*part, backing));
        found.instance = part->header().instance[0];
        found.evidence = part->changes().evidence();
        PERDURE_TRY_ASSIGN(found.ours, is_ours(*part, backing));
        return Status::success();
      });
  if (!looked.ok()) return looked;
  return found;
}

Status check_file(const std::string& directory, const std::string& path, const BackingFile& backing,
                  const FileEvidence& evidence) {
  return with_leftover(directory, path, [&](const std::string&, auto part) {
    Parts parts;
    parts.push_back(std::move(part));
    return check_evidence(parts, backing, evidence);
  });
}

Status mark_leftover(const std::string& directory, const std::string& path,
                     const BackingFile& backing) {
  return with_leftover(directory, path, [&](const std::string&, auto part) {
    part->set_backing(&backing);
    (void)part->changes().note();
    return part->changes().begin();
  });
}

Status write_leftover(const std::string& directory, const std::string& path,
                      const BackingFile& backing, const PoolVersion& version) {
  return with_leftover(directory, path, [&](const std::string&, auto part) -> Status {
    WriteBackTally tally;
    PERDURE_TRY_ASSIGN(const auto to, version_for(*part, version));
    return write_from(*part, backing, to, tally);
  });
}

// Not in use any more, before it is removed: part_facts.hpp, parts.F1.
Status release_leftover(const std::string& directory, const std::string& path,
                        const BackingFile& backing) {
  return with_leftover(directory, path, [&](const std::string&, auto part) -> Status {
    part->set_backing(&backing);
    PERDURE_TRY(part->changes().forget_dead());
    return part->with_pool() ? part->set_in_use(false) : Status::success();
  });
}

Status discard_leftover(const std::string& directory, const std::string& path,
                        const PoolVersion& version) {
  return with_leftover(directory, path, [&](const std::string& file, auto part) -> Status {
    if (!is_of_pool(part->header(), version)) return Status::success();
    part.reset();
    return remove_part_files(file);
  });
}

namespace {

// The part's file, locked: nobody uses it.
Result<FileHandle> claim_leftover(const std::string& file) {
  PERDURE_TRY_ASSIGN(auto handle, open_part_lock(file));
  PERDURE_TRY_ASSIGN(auto alone, lock_part_alone(handle, file));
  if (!alone) {
    return Status(Code::busy, file, " is in use by a running program; wait until it has ended");
  }
  return handle;
}

// Parts of one file that a user's command recovers together.
class Recovery {
 public:
  explicit Recovery(const RecoverOptions& options) : options_(options) {}

  Result<WriteBackTally> run(const std::vector<PartPlace>& places) {
    PERDURE_TRY(claim(places));
    if (!parts_.empty()) PERDURE_TRY(recover());
    parts_.clear();
    for (const PartPlace& place : places) PERDURE_TRY(remove_part_files(place.file));
    for (LockedDirectory& directory : directories_) tidy_part_directory(directory);
    return tally_;
  }

 private:
  // Directories in an order that all processes have. What was never born has nothing to recover.
  Status claim(const std::vector<PartPlace>& places) {
    std::set<std::string> directories;
    for (const PartPlace& place : places) directories.insert(place.directory);
    for (const std::string& directory : directories) {
      PERDURE_TRY_ASSIGN(auto locked, lock_part_directory(directory, false));
      directories_.push_back(std::move(locked));
    }
    for (const PartPlace& place : places) {
      PERDURE_TRY_ASSIGN(auto claimed, claim_leftover(place.file));
      locks_.push_back(std::move(claimed));
      if (is_unborn(place.file)) continue;
      PERDURE_TRY_ASSIGN(auto part, attach_part_file(place.file));
      parts_.push_back(std::move(part));
    }
    return Status::success();
  }

  const PartHeaderFormat& header() const { return parts_.front()->header(); }

  Status recover() {
    if (options_.to.empty()) {
      PERDURE_TRY_ASSIGN(const auto file, BackingFile::open(header().path, access));
      PERDURE_TRY(check_inode(*parts_.front(), file));
      if (!options_.overwrite) PERDURE_TRY(check_parts(parts_, file));
      return write(file);
    }
    struct stat found{};
    if (::stat(options_.to.c_str(), &found) != 0) return write_copy();
    PERDURE_TRY_ASSIGN(const auto there, BackingFile::open(options_.to, access));
    return write_renamed(there);
  }

  // A change of name is one of the file too: its time of change is not the recorded one. So its
  // other time, its size and its bytes say whether it is what the job left.
  Status write_renamed(const BackingFile& file) {
    if (file.inode() != header().file_inode || file.device() != header().file_device) {
      return Status(
          Code::wrong_state, options_.to, " is another file than the one that was cached as ",
          header().path,
          "; name one that does not exist yet, or the cached file under the name that it has now");
    }
    if (!options_.overwrite && !check_parts(parts_, file).ok()) {
      PERDURE_TRY_ASSIGN(const FileStamp seen, file.stamp());
      PERDURE_TRY(check_but_for_name(file, seen));
    }
    return write(file);
  }

  Status check_but_for_name(const BackingFile& file, const FileStamp& seen) {
    FileEvidence all;
    bool known = false;
    for (const auto& part : parts_) {
      const FileEvidence evidence = part->changes().evidence();
      known = known || (evidence.recorded.size_bytes == seen.size_bytes &&
                        evidence.recorded.modified_ns == seen.modified_ns);
      all = join_evidence(all, evidence);
    }
    // A write or a cut that was under way left both times as this one.
    const FileStamp before_rename{seen.size_bytes, seen.modified_ns, seen.modified_ns};
    const bool same_boot = is_same_boot(header());
    const FileVerdict verdict = judge_file(all, before_rename, same_boot, boot_time_ns());
    if (!known && (!all.under_way || verdict == FileVerdict::changed)) {
      return changed_file(*parts_.front(), all, seen);
    }
    return same_boot ? check_bytes(parts_, file, all, seen) : Status::success();
  }

  // cache.P14: all parts know that the file changes before it does, and until it has all.
  Status write(const BackingFile& file) {
    for (const auto& part : parts_) {
      part->set_backing(&file);
      (void)part->changes().note();
      PERDURE_TRY(part->changes().begin());
    }
    for (const auto& part : parts_) PERDURE_TRY(write_part(*part, file));
    for (const auto& part : parts_) PERDURE_TRY(part->changes().forget_dead());
    return Status::success();
  }

  Status write_part(CachePart& part, const BackingFile& file) {
    std::optional<PoolVersion> version;
    if (part.with_pool() && options_.version) {
      version = PoolVersion{{0, 0}, *options_.version, 0, 0};
    }
    return write_from(part, file, version, tally_);
  }

  // The cached file's bytes first, then those that are here, changed or not, then what it lacks.
  Status write_copy() {
    if (parts_.size() != header().nodes) {
      return Status(Code::unsupported, "the parts that ", header().nodes, " nodes have of ",
                    header().path, " are needed to write it to another file, and ", parts_.size(),
                    (parts_.size() == 1 ? " is here" : " are here"),
                    "; give the directories of all of them");
    }
    PERDURE_TRY_ASSIGN(const auto copy, BackingFile::make(options_.to));
    for (const auto& part : parts_) part->changes().leave();
    const Status written = fill_copy(copy);
    if (!written.ok()) (void)remove_file(options_.to, part_trust());  // report the first failure
    return written;
  }

  Status fill_copy(const BackingFile& copy) {
    const auto cached = BackingFile::open(header().path, BackingFile::Access::read);
    const bool there = cached.ok() && check_inode(*parts_.front(), cached.value()).ok();
    if (there) PERDURE_TRY(copy.copy_from(cached.value()));
    bool whole = there;
    if (is_same_boot(header())) {
      PERDURE_TRY_ASSIGN(const bool present, write_present(copy));
      whole = whole || present;
    }
    if (!whole) {
      return Status(Code::not_found, "not all of ", header_path(),
                    " is in its part, and the file is not there under that name; put it back or, "
                    "if it has another name now, recover it there with --to");
    }
    for (const auto& part : parts_) PERDURE_TRY(write_part(*part, copy));
    PERDURE_TRY(copy.set_at_least(size()));
    return copy.sync();
  }

  // Whether that was all of the file.
  Result<bool> write_present(const BackingFile& copy) const {
    bool whole = true;
    for (const auto& part : parts_) {
      part->set_backing(&copy);
      PERDURE_TRY_ASSIGN(const bool all, part->write_present());
      whole = whole && all;
    }
    return whole;
  }

  std::string header_path() const { return header().path; }

  std::uint64_t size() const {
    for (const auto& part : parts_) {
      if (part->node() == 0) return part->size_bytes();  // node 0 knows
    }
    return 0;
  }

  static constexpr auto access = BackingFile::Access::read_write;
  const RecoverOptions& options_;
  std::vector<LockedDirectory> directories_;
  std::vector<FileHandle> locks_;
  Parts parts_;
  WriteBackTally tally_;
};

}  // namespace

Result<WriteBackTally> recover_parts(const std::vector<PartPlace>& places,
                                     const RecoverOptions& options) {
  if (places.empty()) return Status(Code::invalid_argument, "no part is named");
  return Recovery(options).run(places);
}

Status discard_part(const std::string& directory, const std::string& file) {
  PERDURE_TRY_ASSIGN(auto locked, lock_part_directory(directory, false));
  PERDURE_TRY_ASSIGN(auto claimed, claim_leftover(file));
  PERDURE_TRY(remove_part_files(file));
  tidy_part_directory(locked);
  return Status::success();
}

}  // namespace perdure
