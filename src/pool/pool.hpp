// SPDX-License-Identifier: BSD-3-Clause
//
// Pool: the arrays and scalars of one rank, and their versions, on one device.
//
// Life: attach, open arrays and bind scalars, restart, then commits. The functions marked
// [collective] are called by all ranks of the group in the same order; if one rank fails, all do.
//
// Threads: one at a time. Failure: a pool whose commit ended in CommitOutcome::unknown, or whose
// device failed, refuses everything but destruction.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/io_token.hpp"
#include "base/status.hpp"
#include "device/program_stream.hpp"
#include "pmem/device.hpp"
#include "pmem/parallel.hpp"
#include "pmem/region.hpp"
#include "pool/background_saver.hpp"
#include "pool/catalogue.hpp"
#include "pool/commit_under_way.hpp"
#include "pool/companion.hpp"
#include "pool/kept_versions.hpp"
#include "pool/next_version.hpp"
#include "pool/open_place.hpp"
#include "pool/pool_life.hpp"
#include "pool/rank_change.hpp"
#include "pool/run_page.hpp"
#include "pool/version_taker.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {

struct PoolOptions {
  bool allow_older = false;           // accept an older version where the newest is damaged
  std::uint64_t incarnation_min = 0;  // of the versions that will be committed
  // How many, right below that of the next version, are the taker's after a restart or restore.
  std::uint64_t incarnations_of_taker = 0;
  unsigned copy_threads = 1;  // that copy and flush
  // Held while arrays are copied and made durable, and while they are loaded; null: none is needed.
  std::shared_ptr<IoToken> token = nullptr;
  // Called on all ranks when a version is committed and nothing stores to the device; may be
  // collective.
  std::function<void(std::uint64_t version)> committed = nullptr;
  VersionTaker* taker = nullptr;  // outlives the pool; null: nobody
};

struct PoolStatus {
  std::uint64_t version = 0;
  std::uint64_t commits = 0;
  std::uint64_t commit_ns = 0;
  std::uint64_t commit_ns_last = 0;
  std::uint64_t committed_bytes = 0;
  std::uint64_t restart_ns = 0;
  std::uint64_t model_ns = 0;
  bool survives_power_failure = false;
  bool fell_back = false;
  std::uint32_t lacking_snapshots = 0;  // arrays on a GPU without room for one there
  std::uint32_t old_ranks = 0;  // that made the pool; others go on with it until their first commit
};

// Makes a version that holds nothing, on a device that format_region() prepared.
struct EmptyVersion {
  std::uint64_t version = 0;
  std::uint64_t incarnation = 0;
};
Status format_slots(Device& device, const Region& region, const EmptyVersion& begin = {});

class Pool {
 public:
  // [collective] Chooses the version to restore; writes nothing. The group outlives the pool.
  static Result<std::unique_ptr<Pool>> attach(std::unique_ptr<Device> device, const Region& region,
                                              Group& group, const PoolOptions& options);
  // The pool of this process whose directory is `directory`; null: none is open.
  static Pool* find(const std::string& directory);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Finds or makes an array. Owned by the pool. It is part of the versions of this rank whose
  // commit begins from now on. Local: ranks may have other arrays, or of other shapes.
  Result<VersionedArray*> open_array(const std::string& name, const ArrayShape& shape,
                                     const ArrayOptions& options);
  // [collective] The same on all ranks or on none. `local`: of what this rank did for it before.
  Result<VersionedArray*> open_array_on_all(const std::string& name, const ArrayShape& shape,
                                            const ArrayOptions& options,
                                            const Status& local = Status::success(),
                                            const std::optional<GlobalBox>& box = std::nullopt);
  // Before restart(), where another number of ranks made the pool: that brings back no arrays, but
  // each gets its contents where it is opened on all ranks, by `options.ranks` or the box. The
  // first commit refuses to lose any.
  void take_arrays_late();
  // In place of ArrayOptions::ranks, of an array that is open; before the restart.
  void say_ranks(const std::string& name, RankRule rule);
  // Gives the array back, which no longer exists then. Local; waits until a commit that is under
  // way has read its buffer. Later versions hold what was committed of it last, or, with `erase`,
  // nothing of it. An array that was never committed is erased.
  Status close_array(VersionedArray* array, bool erase);
  // The array has other extents, as many as before, from the next version on; its elements stay in
  // row-major order (VersionedArray::resize()). Local, after restart(); waits until a commit that
  // is under way has read it. On an error, Code::no_space among others, all is as before. Its box
  // is forgotten.
  Status resize_array(VersionedArray& array, const std::vector<std::uint64_t>& extents,
                      void* buffer);
  // The same of an array with a writer, whose contents that one has and saves anew: all of them if
  // the array's copies lie in another extent then, as they do if they must lie `elsewhere`.
  Status resize_written(VersionedArray& array, std::uint64_t bytes, bool elsewhere);
  // What one of versions() holds; of 0, the next one, which before restart() is what that will
  // bring back. Code::not_found.
  Result<ArrayTable> arrays_of(std::uint64_t version) const;
  bool is_open(const std::string& name) const { return next_.arrays().is_open({name, 0}); }
  // Of an array that it holds; null: of none.
  const ArrayShape* held_shape(const std::string& name, std::uint32_t part = 0) const {
    const ArrayId* const found = next_.arrays().find_entry({name, part});
    return found == nullptr ? nullptr : &next_.catalogue().arrays.shared_at(*found).shape;
  }
  // The extents that the pool has of an array; Code::not_found. If another number of ranks made it,
  // those that this rank gets by `rule`.
  Result<std::vector<std::uint64_t>> stored_extents(const std::string& name, RankRule rule) const;
  // The arrays that an old rank has in the version that is gone on from, and elements of one, or
  // of a scalar; the array's type and elements. From attach() until the first commit if another
  // number of ranks made the pool, else Code::wrong_state. Local.
  Result<ArrayTable> arrays_of_old(std::uint32_t old_rank) const;
  Status read_old(const std::string& name, std::uint32_t old_rank, std::uint64_t first,
                  std::uint64_t count, void* to) const;
  // The lowest part of `name` that the next version holds and that is not open.
  std::optional<std::uint32_t> first_closed_part(const std::string& name) const {
    return next_.arrays().first_closed_part(name);
  }
  // Ties memory to a scalar.
  Status bind_scalar(const std::string& name, void* address, std::size_t bytes,
                     ScalarType type = ScalarType::none);
  // From now on versions note how long the file is, and restart() and restore() cut it back to
  // that; after restart() that is done here. Again: with another stream. Local.
  Status name_file(const std::string& path, std::FILE* stream);

  // [collective] Loads the chosen version; returns its number, 0 for a new pool.
  Result<std::uint64_t> restart();

  // The versions that restore() accepts, newest first. From attach() on.
  std::vector<VersionInfo> versions() const;
  // [collective] All arrays, but those in flush mode, and all scalars take the contents of
  // `version`, which is the newest one then: the next commit's version is made from it. In place of
  // restart(), or at any time after it. An array or scalar that it lacks becomes zero, or stays as
  // it is; one that it has with another shape is an error. On an error before anything was changed
  // (Code::not_found, shape_mismatch, damaged), all is as before. Pointers into arrays that live in
  // the pool may have changed.
  Status restore(std::uint64_t version);
  // [collective] The room of `version` is free for others. Not the newest version.
  Status delete_version(std::uint64_t version);

  // [collective] Returns the new version's number. A caller that found something wrong on this
  // rank says it in `ready`, and the commit fails on all.
  Result<std::uint64_t> commit(const Status& ready = Status::success());

  // The parts of commit(), for a caller whose version is finished later: commit_capture() takes the
  // scalars as they are now; commit_save() saves the arrays, all of which have a writer. Both are
  // local. commit_captured() does the rest; what the others could not do it reports to the other
  // ranks. In between nothing else of the pool is called.
  Status commit_capture(const Status& ready = Status::success());
  void commit_save();
  // [collective] Also without commit_save(), which it then does. `saved`: what was left of that.
  Result<std::uint64_t> commit_captured(const Status& saved = Status::success());

  // The stream of the program whose work the commits from now on take, as far as it was asked for
  // when they are called, and that goes on when they have it; nullopt: they wait for all that the
  // program has asked of its GPU. It waits for a commit under way, too. Local. Code::unsupported:
  // no driver is in use.
  Status set_stream(std::optional<ProgramStream> stream);

  // From here on no other array is opened and no companion added; `why` says what to do instead.
  void close_to_others(std::string why) { life_.close_to_others(std::move(why)); }

  // Saves in the background; an array must not be stored to until before_write() has returned.
  Status commit_begin();
  // Code::wrong_state: a twin array, which is committed where it is.
  Status before_write(VersionedArray& array);
  // VersionedArray::write(); Code::wrong_state as before.
  Status write(VersionedArray& array, std::uint64_t first_byte, std::uint64_t count_bytes,
               const void* source);
  // [collective] Makes durable what commit_begin() or commit_staged() began.
  Result<std::uint64_t> commit_wait();

  // [collective] Copies all arrays, which must have been opened as staged, to DRAM, makes the
  // version before it durable, and saves in the background. When it has returned, stores by any
  // rank are not part of the version. One agreement if all goes well. Returns the number of the
  // version, which the next call or commit_wait() makes durable. If the version before fails, that
  // is the error, and nothing is begun.
  Result<std::uint64_t> commit_staged(const Status& ready = Status::success());

  // [collective] Whether levels will keep the companion with the pool's versions (VersionTaker::
  // admit). Before add_companion(), and before the companion holds anything.
  Result<bool> admit_companion(const std::string& name, const std::string& obstacle);
  // From now on committed with the pool, synchronously only; it may not be restored to another
  // version than the newest. Code::wrong_state before restart(). The pool does not own it. Local,
  // and collective if it is `kept`, as admit_companion() said.
  Status add_companion(Companion& companion, bool kept);
  void remove_companion(Companion& companion);

  // Where it was opened; "" if it was not opened as a directory. `change`: another number of ranks
  // made it (pool_ranks.cpp).
  void set_directory(const std::string& directory, std::unique_ptr<RankChange> change = nullptr);
  const std::string& directory() const { return place_.directory(); }
  // The number of the version that the next commit makes.
  std::uint64_t next_version() const { return next_.version(); }
  const JobId& job_id() const { return region_.identity.job_id; }
  const JobId& lineage() const { return region_.identity.lineage; }
  Device& device() { return *device_; }
  const Geometry& geometry() const { return region_.geometry; }
  std::uint32_t keep() const { return region_.geometry.slots - 1; }  // versions
  // The version that attach() has chosen; until restart() or restore() returns.
  const Catalogue& chosen() const { return kept_.chosen().catalogue; }
  // Success unless its data are damaged here. They are looked at if they must be before they are
  // believed, or if it is `asked`.
  Status check_chosen(bool asked = false) const;
  // It is not the one before the next number: a restore went back to it, or damage made it so.
  bool went_back() const { return next_.version() != chosen().version + 1; }
  // Of the version that will be committed next.
  std::uint64_t incarnation() const { return next_.incarnation(); }
  // Of the version that the pool is at.
  std::uint64_t head_incarnation() const { return kept_.head_incarnation(); }
  // The pool was made of an image, and is at the version that it had, until the next commit.
  bool is_at_image() const {
    return region_.identity.image_version == status_.version &&
           next_.version() == status_.version + 1;
  }
  // The same, and the image has shares of companions, as they were at that version.
  bool of_image() const { return region_.identity.image_shares != 0 && is_at_image(); }
  std::uint64_t image_incarnation() const { return region_.identity.image_incarnation; }
  // VersionTaker::held(), if it was made of an image.
  Result<std::optional<HeldShare>> held_share(const std::string& name);
  bool restarted() const { return life_.restarted(); }
  // Another number of ranks made it, and it has not committed since (rank_change.hpp).
  bool is_changing() const { return change_ != nullptr; }
  bool commit_pending() const { return under_way_.pending(); }
  // The version that commit_wait() will finish has the array.
  bool commits(const VersionedArray& array) const {
    const VersionUnderWay* version = under_way_.pending_version();
    return version != nullptr && version->has(array);
  }
  // Of arrays of this pool, for the notes of its versions. Local.
  Status set_box(const VersionedArray& array, GlobalBox box);
  // Success unless it must be reopened.
  Status usable() const { return check_usable(); }
  std::size_t open_arrays() const { return next_.arrays().size(); }
  bool has_companions() const { return !companions_.empty(); }
  Group& group() { return group_; }
  std::uint32_t ranks() const { return group_.ranks(); }
  RunPage& run_page() { return run_page_; }
  PoolStatus status() const;

 private:
  Pool(std::unique_ptr<Device> device, const Region& region, Group& group,
       const PoolOptions& options);

  Status check_usable() const;
  Status check_joinable(const Companion& companion) const;
  // Damage of data, with rank, file and remedy.
  Status located(const Status& status) const;
  void note_place(const std::string& directory);
  Status check_committable() const;
  // Arrays and scalars (pool_arrays.cpp).
  Status check_closed(const std::string& name, std::uint32_t part) const;
  Status plan_array(const std::string& name, const ArrayShape& shape, const ArrayOptions& options);
  bool must_leave(const VersionedArray& array, const OpenArrays::OpenArray& open) const;
  Result<OpenArrays::OpenArray*> find_to_resize(const VersionedArray& array);
  Status give_size(OpenArrays::OpenArray& open, const ArrayShape& shape, bool leave, void* buffer);
  Result<VersionedArray*> add_array(ArrayId entry, bool known, const ArrayOptions& options);
  void wait_for_saver();
  Status wait_until_saved(const VersionedArray& array);
  Status check_writable(const VersionedArray& array) const;
  Status make_room_for_catalogue();
  Status check_room_for(const std::string& what);
  Status take_newest_file();
  static Status not_both(const std::string& path);
  Status load_all();
  // Another number of ranks (pool_ranks.cpp).
  Status check_changing() const;
  Status check_first_restart() const;
  Result<Catalogue> plan_scalars() const;
  Status agree_on_files(const Catalogue& held) const;
  Status fill_array(const class Redistribution& redistribution, VersionedArray& array) const;
  Status take_old_contents(const Redistribution& redistribution, const Catalogue& held);
  Status settle_old_version(std::uint64_t before);
  Status commit_old_version(std::uint64_t committed_ns);
  Status forget_version(std::uint64_t version);
  Result<std::uint64_t> restart_changed();
  Status finish_change(const Catalogue& newest);
  Status take_late(VersionedArray& array, RankRule rule);
  Status check_late_scalar(const std::string& name) const;
  void tell_named(VersionedArray& array, ArrayId id) const;
  Status load_array(OpenArrays::OpenArray& open);
  // Versions (pool_versions.cpp).
  Status verify_arrays(const Catalogue& catalogue) const;
  Result<std::uint64_t> restart_now();
  void note_restarted(std::uint64_t start_ns);
  Status make_recovered_newest(const std::function<Status()>& when_newest);
  Status check_held(std::uint64_t version) const;
  Result<Catalogue> check_restorable(std::uint64_t version) const;
  // Commits.
  Status note_program();
  VersionUnderWay begin_next();
  Status open_successor();
  void release_up_to(std::uint64_t version);
  VersionUnderWay begin_version(const Status& ready);
  Status save_with_token(const VersionUnderWay& version, std::uint64_t& bytes);
  Status prepare_companions(std::uint64_t version);
  void save_captured(VersionUnderWay& version);
  Result<std::uint64_t> save_and_finish(VersionUnderWay version, std::uint64_t start_ns);
  Status check_alone(const std::string& what) const;
  Status check_all_staged() const;
  Status refuse_commit(const Status& state, const Subject& subject = {});
  Status finish_before_staging();
  Result<std::uint64_t> finish_commit(VersionUnderWay version, const Status& saved,
                                      std::uint64_t bytes);
  CommitParties parties_of(const VersionUnderWay& version);
  // The slot of the one after it is open then, or not.
  void take_roles(const VersionUnderWay& version, bool next_is_open);
  void tell_companions(std::uint64_t version);
  // Whether the newest version counts is not known, if this is no success.
  void fail(const Status& status);
  void take_version(const VersionUnderWay& version, bool next_is_open);
  void note_commit(const VersionUnderWay& version, std::uint64_t blocked_ns, std::uint64_t bytes);
  BackgroundSaver& saver();
  std::uint64_t head() const { return next_.parent(); }
  std::uint32_t open_slot_index() const { return retained().slot_of(next_.version()); }
  const Retained& retained() const { return kept_.retained(); }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Accelerators> accelerators_;  // device.R1: they go before the device
  Region region_;
  Group& group_;
  PoolOptions options_;
  ParallelWriter writer_;
  RunPage run_page_;
  KeptVersions kept_;
  NextVersion next_;
  OpenPlace place_;                     // commit.cpp, pool.I9
  std::unique_ptr<RankChange> change_;  // under way until the first commit
  std::vector<Companion*> companions_;
  PoolLife life_;
  CommitUnderWay under_way_;
  PoolStatus status_;
  std::unique_ptr<BackgroundSaver> saver_;  // last: its thread uses the members above
};

}  // namespace perdure
