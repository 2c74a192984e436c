// SPDX-License-Identifier: BSD-3-Clause
//
// Cached file: how a process reaches every byte of a file that is cached: its own node's part by
// load and store, those of other nodes by their servers.
//
// A file of one node may stand aside (file_aside.hpp): then there is no part yet, and the bytes are
// those of the file itself.
//
// One object for each file in a process, shared by all handles of it. On one node any set of
// processes may have the file open; on several nodes those that opened it together.
//
// Threads: read, write, size and the pointers: any. Failure: open() and what is called collective
// fail on all ranks or on none; the rest fails alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "cache/backing_file.hpp"
#include "cache/early_write_back.hpp"
#include "cache/group_recovery.hpp"
#include "cache/part_directory.hpp"
#include "cache/part_share.hpp"
#include "mpi/mpi_group.hpp"
#include "mpi/node_map.hpp"
#include "mpiio/access_name.hpp"
#include "mpiio/atomic_mode_lock.hpp"
#include "mpiio/cache_options.hpp"
#include "mpiio/file_aside.hpp"
#include "mpiio/file_base.hpp"
#include "mpiio/file_openers.hpp"
#include "mpiio/other_nodes.hpp"
#include "pool/companion.hpp"
#include "pool/pool.hpp"

namespace perdure {

// What a process did with a file, for the report at its close.
struct CacheTally {
  std::atomic<std::uint64_t> reads{0};
  std::atomic<std::uint64_t> read_bytes{0};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<std::uint64_t> written_bytes{0};
  std::atomic<std::uint64_t> remote_bytes{0};
  std::uint64_t filled_bytes = 0;   // read from the cached file, at its close
  std::uint64_t passed_bytes = 0;   // read and written without room in a part, at its close
  std::uint64_t evicted_bytes = 0;  // of blocks that gave their room to others, at its close
  std::uint64_t written_back_bytes = 0;
  // Read and written while it stood aside, by how many accesses; and whether it still does.
  std::atomic<std::uint64_t> aside_accesses{0};
  std::atomic<std::uint64_t> aside_bytes{0};
  bool aside = false;
};

class CachedFile final : public Companion {
 public:
  // Collective over `group`. `path` is absolute. The file exists, and this process may read it, or
  // it is empty.
  static Result<std::shared_ptr<CachedFile>> open(MpiGroup& group, const std::string& path,
                                                  const CacheOptions& options,
                                                  BackingFile::Access access);
  // The same of a file that all ranks have entered in one table, so that they share a node; not
  // collective, and without failure.
  static std::shared_ptr<CachedFile> open_aside(BackingFile backing, FileAside::Claim claim,
                                                std::uint32_t rank, std::uint32_t ranks);
  // Whether this process has any file cached, or aside; whether it has this one.
  static bool is_any_known();
  static bool is_known(std::uint64_t device, std::uint64_t inode);
  // Whether another file that this process has cached had this path first: it was removed while it
  // is open, and its part has the name.
  static bool is_path_taken(const std::string& path, std::uint64_t device, std::uint64_t inode);
  // Collective over the group of a handle that is closed: writes back, and gives the parts up with
  // the last handle. `discard`: what is dirty is of no use to anybody.
  static Status close(std::shared_ptr<CachedFile> file, MpiGroup& group, bool discard);
  // What the process has open, for its end (file_ends.cpp): in the order of opening; those that are
  // closed here and served to others, which are waited for.
  static std::vector<std::shared_ptr<CachedFile>> all_known();
  static bool is_any_served();
  static void end_served(std::uint32_t wait_ms);
  Status end_connections();
  Status end_alone(std::uint32_t wait_ms);
  // Of this node's; "" while it stands aside.
  std::string part_path() const;
  ~CachedFile() override;

  // Bytes of the file; reading ends where the caller knows that the file does.
  Status read(std::uint64_t offset, void* to, std::uint64_t bytes);
  Status write(std::uint64_t offset, const void* from, std::uint64_t bytes, Acknowledge when);
  // Of bytes that are not all together (file_pieces.hpp).
  class Pieces;
  // Before writes: that of a file whose changes could not be undone fails.
  const Status& base_failure() const { return base_.failure(); }
  // Of a file that stands aside: reads, and returns how many bytes there are before the file ends,
  // which size_bytes() would have to ask the system for. Nothing: it does not, read() is to read.
  Result<std::optional<std::uint64_t>> read_aside(std::uint64_t offset, void* to,
                                                  std::uint64_t bytes);

  // After an access: hands over what is dirty while the process computes, if it is worth that
  // (early_write_back.hpp).
  void write_early() {
    if (!early_.has_begun() && backing_.access() != BackingFile::Access::read && !is_aside() &&
        (others_.is_serving() || part().touched_bytes() >= EarlyWriteBack::least_bytes))
        [[unlikely]] {
      begin_early_write_back();
    }
  }

  // At least `enough` bytes, or how many the file has now.
  Result<std::uint64_t> size_bytes(std::uint64_t enough);
  Status grow_size(std::uint64_t bytes);
  // Collective: nobody reads or writes meanwhile. False: the caller is to set the size of the file
  // itself, and then to say that it has.
  Result<bool> set_size(MpiGroup& group, std::uint64_t bytes);
  Status end_set_size(MpiGroup& group);  // of this rank alone, if it fails
  // Collective: room for so many bytes of the file itself, which has at least as many then.
  Status preallocate(MpiGroup& group, std::uint64_t bytes);
  // Of this rank alone: what it wrote, and what others of the nodes it wrote to did.
  Status sync(SyncTarget request);

  // Companion, of a file that is committed with a pool.
  std::string name() const override { return "file " + path(); }
  Status prepare(std::uint64_t version) override;
  void committed(std::uint64_t version) override { base_.end(set_base_version(version)); }
  void failed(const Status& status) override { base_.end(status); }
  CompanionShare share() override;
  Status read_share(std::uint64_t version, std::uint64_t offset, std::span<std::byte> out) override;
  void pool_closed() override { base_.pool_closed(); }

  // Of one that stands aside: it does so no more, or that is the failure.
  Status become_cached();
  bool is_aside() const { return is_aside_.load(std::memory_order_acquire); }

  // Shared file pointers and the lock of atomic mode. A handle of a file that was opened aside has
  // the pointer of an entry of the table, for good, as FileAside::pointer_slot() says.
  Result<int> take_pointer();
  Status give_pointer(int slot);
  Result<std::uint64_t> add_to_pointer(int slot, std::int64_t bytes);
  Status store_pointer(int slot, std::uint64_t bytes);
  Result<std::uint64_t> load_pointer(int slot);
  Status lock();
  Status unlock();

  std::uint32_t nodes() const { return layout_.nodes; }
  const std::string& path() const { return backing_.path(); }
  CacheTally& tally() { return tally_; }
  // Whether this process has the file open by several handles.
  bool is_shared() const { return handles_ > 1; }
  CachePart& own_part() { return *part_.part; }

 private:
  struct Founding;    // what rank 0 decides for all
  struct NodePieces;  // file_pieces.hpp
  static Status release_served(MpiGroup& group, const std::string& path);
  explicit CachedFile(BackingFile backing) : backing_(std::move(backing)) {}
  static Result<std::shared_ptr<CachedFile>> make(MpiGroup& group, BackingFile backing,
                                                  std::shared_ptr<CachedFile> known,
                                                  const CacheOptions& options);
  static Status draw(Founding& founding);
  static Result<Founding> establish(MpiGroup& group, const NodeMap& map, const BackingFile& backing,
                                    const std::string& directory, Pool* pool);
  static Result<std::string> obstacle(MpiGroup& group, const NodeMap& map,
                                      const CacheOptions& options, const Pool& pool, bool known);
  static Result<bool> admit(MpiGroup& group, const NodeMap& map, const CacheOptions& options,
                            Pool& pool, bool known, const std::string& path);
  static Status recover(MpiGroup& group, const NodeMap& map, const BackingFile& backing,
                        const std::string& directory, Pool* pool);
  Status join_parts(MpiGroup& group, const NodeMap& map, const Founding& founding,
                    const std::string& directory, const Pool* pool);
  Status join_pool(MpiGroup& group, Pool* pool, std::uint64_t file_bytes, bool kept);
  Status release_part(MpiGroup& group);
  Status prefetch(MpiGroup& group, const NodeMap& map);
  Status allocate(std::uint64_t bytes);
  void begin_early_write_back();
  void end_early_write_back();
  bool syncs_file();
  Status write_back_own(bool sync);
  Status hand_over_own();
  Status record_last_change();
  Status tear_down(bool keep);
  // Collective over the group of a handle that is closed.
  Status tear_down_together(MpiGroup& group, bool gives_up, bool keep);

  // file_aside.cpp. False: nothing was done, as the file is cached now.
  Result<bool> write_aside(std::uint64_t offset, const void* from, std::uint64_t bytes);
  template <typename DoAccess>
  Result<bool> do_aside(const DoAccess& access) {
    while (is_aside()) {
      AsideEntry& entry = aside_->entry();
      if (!entry.begin()) {
        PERDURE_TRY(follow());
        continue;
      }
      const Status done = access(backing_);
      entry.end();
      PERDURE_TRY(done);
      return true;
    }
    return false;
  }
  void spend(std::uint64_t bytes, Direction direction);
  void count_aside(std::uint64_t bytes);
  Status follow();
  Status make_cached(std::uint32_t wait_ms);
  void use_part(OpenPart open);
  static void keep_open(const std::shared_ptr<CachedFile>& file);

  CachePart& part() { return *part_.part; }
  // The part of a node: this one's, or another's, to which this connects when it is first needed.
  Result<PartAccess*> at(std::uint32_t node);
  Status set_base_version(std::uint64_t version);

  BackingFile backing_;
  OpenPart part_;
  std::optional<OwnPart> own_;
  Layout layout_;
  FileOpeners openers_;
  OtherNodes others_;
  std::atomic<std::uint64_t> known_size_{0};  // the file has at least so many bytes
  AtomicModeLock lock_;
  FileBase base_;  // of one that is committed with a pool
  int handles_ = 0;
  EarlyWriter early_;
  std::optional<FileAside> aside_;     // of one that was opened aside, for good
  std::atomic<bool> is_aside_{false};  // part_ and own_ are set when it is not
  std::atomic<std::vector<NodePieces>*> spare_pieces_{nullptr};  // of the access in pieces before
  CacheTally tally_;
};

}  // namespace perdure
