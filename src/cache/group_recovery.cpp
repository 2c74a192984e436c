// SPDX-License-Identifier: BSD-3-Clause
#include "cache/group_recovery.hpp"

#include <algorithm>

#include "base/agreement.hpp"
#include "cache/part_note.hpp"
#include "cache/part_share.hpp"

namespace perdure {
namespace {

class FileRecovery {
 public:
  FileRecovery(Group& group, const BackingFile& backing, const GroupRecovery& recovery)
      : group_(group), backing_(backing), with_(recovery) {}

  Status run() {
    const Status looked = look();
    std::uint64_t words[] = {with_.brought_back ? 1U : 0U, with_.image ? 1U : 0U, used_ ? 1U : 0U,
                             fitting_.empty() && stale_.empty() ? 0U : 1U};
    PERDURE_TRY(agree_max(group_, looked, words));
    if (words[2] != 0) return Status::success();  // cache.R4
    if (words[0] == 0) {
      const std::string& path = backing_.path();
      PERDURE_TRY(agree(group_, is_lost() ? part_was_lost(with_.pool, path) : Status::success()));
    }
    if (words[0] == 0 && words[3] == 0) return Status::success();
    if (words[0] == 0 || words[1] == 0) return use_parts();
    Status here;
    if (!with_.image) {
      here = Status(Code::damaged, backing_.path(), ": the image of version ",
                    with_.version.version, " of rank ", group_.rank(),
                    " is gone, or lacks the file, which others' images have");
    }
    PERDURE_TRY(agree(group_, here));
    return use_images();
  }

 private:
  // Of each directory of this node what was left behind there, alone.
  Status look() {
    if (!with_.leads) return Status::success();
    for (const std::string& directory : with_.directories) {
      PERDURE_TRY_ASSIGN(auto found, look_at_leftover(directory, backing_.path(), with_.version));
      if (found == Leftover::other) {
        PERDURE_TRY(recover_leftover_part(directory, backing_.path(), backing_, with_.version));
      } else if (found == Leftover::used) {
        used_ = true;
      } else if (found != Leftover::none) {
        (found == Leftover::fits ? fitting_ : stale_).insert(directory);
      }
    }
    return Status::success();
  }

  // cache.R6.
  bool is_lost() const {
    return with_.leads && !with_.pool.empty() && fitting_.empty() && stale_.empty() &&
           has_part_note(with_.pool, backing_.path());
  }

  template <typename Step>
  Status each(const std::set<std::string>& directories, const Step& step) const {
    Status all;
    for (const std::string& directory : directories) {
      if (all.ok()) all = step(directory);
    }
    return agree(group_, all);
  }

  Status discard(const std::string& directory) const {
    return discard_leftover(directory, backing_.path(), with_.version);
  }

  // cache.R5. Of parts of one instance: what was left behind of another may be older than the file.
  Status check_files() const {
    FileEvidence all;
    std::uint64_t instance = 0;
    bool ours = false;
    Status looked;
    for (const std::string& directory : fitting_) {
      const auto found = look_at_file(directory, backing_.path(), backing_);
      if (!found.ok()) looked = found.status();
      if (!found.ok()) break;
      instance = found.value().instance;
      ours = ours || found.value().ours;
      all = join_evidence(all, found.value().evidence);
    }
    std::uint64_t words[] = {ours ? instance : 0,
                             all.under_way ? instance : 0,
                             all.other_clock ? 1U : 0U,
                             all.recorded.changed_ns,
                             all.begun_ns,
                             all.slowest_ns};
    PERDURE_TRY(agree_max(group_, looked, words));
    Status checked;
    if (!ours && words[0] != instance) {
      all.under_way = all.under_way || words[1] == instance;
      all.other_clock = words[2] != 0;
      all.recorded.changed_ns = std::max(all.recorded.changed_ns, words[3]);
      all.begun_ns = words[4];
      all.slowest_ns = words[5];
      for (const std::string& directory : fitting_) {
        if (checked.ok()) checked = check_file(directory, backing_.path(), backing_, all);
      }
    }
    return agree(group_, checked);
  }

  // cache.R2, cache.R3, cache.R5.
  Status use_parts() {
    std::uint64_t words[] = {fitting_.empty() ? 0U : 1U};
    PERDURE_TRY(agree_max(group_, Status::success(), words));
    PERDURE_TRY(each(stale_, [&](const std::string& directory) {
      return words[0] != 0 ? discard(directory)
                           : recover_leftover_part(directory, backing_.path(), backing_,
                                                   with_.version);  // says what is wrong
    }));
    PERDURE_TRY(check_files());
    PERDURE_TRY(each(fitting_, [&](const std::string& directory) {
      return mark_leftover(directory, backing_.path(), backing_);
    }));
    PERDURE_TRY(each(fitting_, [&](const std::string& directory) {
      return write_leftover(directory, backing_.path(), backing_, with_.version);
    }));
    PERDURE_TRY(each(fitting_, [&](const std::string& directory) {
      return release_leftover(directory, backing_.path(), backing_);
    }));
    return each(fitting_, [&](const std::string& directory) { return discard(directory); });
  }

  // Whether the ranks' shares are of one file at one version.
  Status check_shares(const PartShare* share, const Status& parsed) {
    const PartShareFormat format = share != nullptr ? share->format() : PartShareFormat{};
    std::uint64_t words[] = {format.instance[0], ~format.instance[0], format.file_bytes,
                             ~format.file_bytes};
    PERDURE_TRY(agree_max(group_, parsed, words));
    if (words[0] == ~words[1] && words[2] == ~words[3]) return Status::success();
    return Status(Code::damaged, backing_.path(), ": the images of version ", with_.version.version,
                  " have shares of different files, or sizes");
  }

  // cache.R1. Only cut to its length first, so that nothing else is beyond its end.
  Status use_images() {
    const auto share = PartShare::parse(with_.image->head);
    PERDURE_TRY(check_shares(share.ok() ? &share.value() : nullptr, share.status()));
    const auto file = BackingFile::open(backing_.path(), BackingFile::Access::read_write);
    Status sized = file.status();
    if (sized.ok() && group_.rank() == 0) {
      sized = file.value().set_size(share.value().format().file_bytes);
    }
    PERDURE_TRY(agree(group_, sized));
    Status written = share.value().write(file.value(), with_.image->bytes);
    if (written.ok()) written = file.value().sync();
    PERDURE_TRY(agree(group_, written));
    fitting_.insert(stale_.begin(), stale_.end());
    PERDURE_TRY(each(fitting_, [&](const std::string& directory) { return discard(directory); }));
    if (with_.leads && !with_.pool.empty()) remove_part_note_of(with_.pool, backing_.path());
    return Status::success();
  }

  Group& group_;
  const BackingFile& backing_;
  const GroupRecovery& with_;
  std::set<std::string> fitting_;
  std::set<std::string> stale_;
  bool used_ = false;
};

}  // namespace

Status recover_group_file(Group& group, const BackingFile& backing, const GroupRecovery& recovery) {
  return FileRecovery(group, backing, recovery).run();
}

}  // namespace perdure
