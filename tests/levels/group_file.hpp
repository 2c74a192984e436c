// SPDX-License-Identifier: BSD-3-Clause
//
// A cached file that is committed with a pool, without MPI: each rank is a node of its own, whose
// part is beside its pool, or in a directory of the node. It writes to blocks of that part only.
// What the file holds at a version is a pure function of the version.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/agreement.hpp"
#include "base/random.hpp"
#include "cache/group_recovery.hpp"
#include "cache/part_share.hpp"
#include "pool/pool.hpp"

namespace perdure {

constexpr std::uint64_t group_file_block = 4096;

// Version `s` writes a run in one of the blocks of each rank, and the file grows by blocks.
struct GroupFileContents {
  std::uint32_t ranks = 1;

  // Up to the last byte that was written.
  std::uint64_t bytes_at(std::uint64_t version) const {
    std::uint64_t bytes = 0;
    for (std::uint64_t s = 1; s <= version; ++s) {
      bytes = std::max(bytes, offset_of(ranks - 1, s) + run_of(0, s).size());
    }
    return bytes;
  }
  std::uint64_t offset_of(std::uint32_t rank, std::uint64_t version) const {
    const std::uint64_t row = version * 7 % (2 + version / 4);
    return (row * ranks + rank) * group_file_block + version * 131 % 3000;
  }
  static std::vector<unsigned char> run_of(std::uint32_t rank, std::uint64_t version) {
    std::vector<unsigned char> run(40 + version * 97 % 900);
    for (std::size_t i = 0; i < run.size(); ++i) {
      run[i] = static_cast<unsigned char>(1 + (version * 31 + rank * 17 + i * 7) % 255);
    }
    return run;
  }
  std::vector<unsigned char> at(std::uint64_t version) const {
    std::vector<unsigned char> file(bytes_at(version));
    for (std::uint64_t s = 1; s <= version; ++s) {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const auto run = run_of(rank, s);
        const auto at = static_cast<std::ptrdiff_t>(offset_of(rank, s));
        std::copy(run.begin(), run.end(), file.begin() + at);
      }
    }
    return file;
  }
};

class GroupFile final : public Companion {
 public:
  // Collective. `path` exists. `parts`: this rank's directory for its part, which exists; empty:
  // the pool's.
  static Result<std::unique_ptr<GroupFile>> open(Group& group, Pool& pool, const std::string& path,
                                                 const std::string& obstacle = "",
                                                 const std::string& parts = "") {
    auto backing = BackingFile::open(path, BackingFile::Access::read_write);
    PERDURE_TRY(agree(group, backing.status()));
    std::unique_ptr<GroupFile> file(new GroupFile(group, backing.take()));
    file->parts_ = parts.empty() ? pool.directory() : parts;
    PERDURE_TRY(file->join(pool, obstacle));
    return file;
  }

  // Makes of the contents of version - 1 those of `version`, of this rank's blocks. Some versions
  // hand what is dirty to the file itself, before and after.
  Status change_to(std::uint64_t version) {
    const auto run = GroupFileContents::run_of(group_.rank(), version);
    const std::uint64_t offset = contents_.offset_of(group_.rank(), version);
    if (version % 5 == 0) PERDURE_TRY(part().write_back(0, true).status());
    for (std::size_t done = 0; done < run.size(); done += 300) {
      const std::size_t count = std::min<std::size_t>(300, run.size() - done);
      PERDURE_TRY(part().write(offset + done, run.data() + done, count, Acknowledge::sync));
    }
    part().grow_size(contents_.bytes_at(version));
    if (version % 3 != 0) return Status::success();
    return part().write_back(version, version % 2 == 0).status();
  }

  // Why this rank's blocks are not those of the version; or "".
  std::string wrong_at(std::uint64_t version) {
    const auto wanted = contents_.at(version);
    if (part().size_bytes() != wanted.size()) {
      return "the file has " + std::to_string(part().size_bytes()) + " bytes instead of " +
             std::to_string(wanted.size());
    }
    for (std::uint64_t at = 0; at < wanted.size(); at += group_file_block) {
      if (place_of(part().layout(), at).node != part().node()) continue;
      std::vector<unsigned char> got(std::min<std::uint64_t>(group_file_block, wanted.size() - at));
      if (!part().read(at, got.data(), got.size()).ok()) return "the file can't be read";
      const auto differs =
          std::mismatch(got.begin(), got.end(), wanted.begin() + static_cast<std::ptrdiff_t>(at));
      if (differs.first == got.end()) continue;
      return "the file differs at byte " +
             std::to_string(at + static_cast<std::uint64_t>(differs.first - got.begin()));
    }
    return "";
  }

  // Collective: as CachedFile::close().
  Status close() {
    PERDURE_TRY(agree(group_, part().write_back(0, true).status()));
    pool_->remove_companion(*this);
    pool_ = nullptr;
    forget_first();
    PERDURE_TRY(agree(group_, record_last_change()));
    PERDURE_TRY(agree(group_, part().set_in_use(false)));
    return agree(group_, leave_part(std::move(part_), false));
  }

  std::string name() const override { return "file " + backing_.path(); }
  Status prepare(std::uint64_t version) override {
    PERDURE_TRY(part().persist());
    return part().set_prepared(version);
  }
  // Node 0 first, as CachedFile does by a message: it must know how large the file was before any
  // rank writes on.
  void committed(std::uint64_t version) override {
    bytes_ = contents_.bytes_at(version);
    {
      const std::lock_guard<std::mutex> lock(first().mutex);
      base_ = first().part == nullptr ? Status(Code::peer_failed, "node 0 is gone")
                                      : first().part->set_base_version(version, bytes_).status();
    }
    if (base_.ok()) base_ = part().set_base_version(version, bytes_).status();
  }
  CompanionShare share() override {
    const PartShare share = PartShare::of(part(), bytes_, 0, 1);
    return {backing_.path(), share.head(), share.bytes()};
  }
  Status read_share(std::uint64_t version, std::uint64_t offset,
                    std::span<std::byte> out) override {
    PERDURE_TRY(base_);
    if (read_slowly) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return PartShare::of(part(), bytes_, 0, 1).read(part(), version, offset, out);
  }
  void failed(const Status& status) override { base_ = status; }
  void pool_closed() override { pool_ = nullptr; }
  ~GroupFile() override {
    forget_first();
    if (pool_ != nullptr) pool_->remove_companion(*this);
  }

  CachePart& part() { return *part_.part; }
  bool read_slowly = false;

 private:
  GroupFile(Group& group, BackingFile backing)
      : group_(group), backing_(std::move(backing)), contents_{group.ranks()} {}

  // The part of node 0; ranks are threads of one process.
  struct First {
    std::mutex mutex;
    CachePart* part = nullptr;
  };
  static First& first() {
    static First one;
    return one;
  }
  void forget_first() {
    if (group_.rank() != 0) return;
    const std::lock_guard<std::mutex> lock(first().mutex);
    first().part = nullptr;
  }

  PoolVersion version_of(const Pool& pool) const {
    PoolVersion version;
    std::copy_n(pool.job_id().words, 2, version.job);
    version.version = pool.status().version;
    version.incarnation = pool.head_incarnation();
    version.next_incarnation = pool.incarnation();
    if (pool.is_at_image()) version.image_incarnation = pool.image_incarnation();
    return version;
  }

  Status recover(Pool& pool) {
    const auto held = pool.held_share(backing_.path());
    PERDURE_TRY(agree(group_, held.status()));
    GroupRecovery recovery{true, {parts_}, pool.directory(), version_of(pool), pool.of_image(), {}};
    if (held.value()) recovery.image = ImageOfFile{held.value()->head, held.value()->bytes};
    return recover_group_file(group_, backing_, recovery);
  }

  Status record_last_change() {
    PERDURE_TRY(part().changes().begin());
    return part().changes().end();
  }

  Status make(const Pool& pool, const std::uint64_t (&instance)[2]) {
    const PoolVersion version = version_of(pool);
    PartRequest request;
    request.directory = parts_;
    request.file_bytes = bytes_;
    request.restored = version;
    PartIdentity& identity = request.identity;
    identity.path = backing_.path();
    identity.file_device = backing_.device();
    identity.file_inode = backing_.inode();
    identity.node = group_.rank();
    identity.layout = {LayoutKind::cyclic, group_.ranks(), group_file_block, 0};
    std::copy_n(instance, 2, identity.instance);
    std::copy_n(version.job, 2, identity.pool_job);
    identity.pool = pool.directory();
    identity.pool_version = version.version;
    identity.pool_incarnation = version.incarnation;
    identity.next_incarnation = version.next_incarnation;
    auto made = make_part(request, backing_);
    if (made.ok()) part_ = made.take();
    return made.status();
  }

  Status join(Pool& pool, const std::string& obstacle) {
    PERDURE_TRY_ASSIGN(const bool kept, pool.admit_companion(name(), obstacle));
    PERDURE_TRY(recover(pool));
    std::uint64_t drawn[2] = {0, 0};
    if (group_.rank() == 0) PERDURE_TRY(fill_random(drawn, sizeof drawn));
    PERDURE_TRY_ASSIGN(bytes_, backing_.size_bytes());
    PERDURE_TRY(agree_max(group_, Status::success(), drawn));
    PERDURE_TRY(agree(group_, make(pool, drawn)));
    if (group_.rank() == 0) {
      const std::lock_guard<std::mutex> lock(first().mutex);
      first().part = part_.part.get();
    }
    const Status added = pool.add_companion(*this, kept);
    if (added.ok()) pool_ = &pool;
    PERDURE_TRY(agree(group_, added));
    return agree(group_, part().set_in_use(true));
  }

  Group& group_;
  BackingFile backing_;
  std::string parts_;
  GroupFileContents contents_;
  OpenPart part_;
  Pool* pool_ = nullptr;
  std::uint64_t bytes_ = 0;
  Status base_;
};

inline std::vector<unsigned char> bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace perdure
