// SPDX-License-Identifier: BSD-3-Clause
//
// Object set: the objects of a process, the pool that keeps their versions, and the thread that
// flushes beside the program.
//
// Life: open, add objects, restart, then persist() at every persistence point. The functions marked
// [collective] are called by all ranks of the pool's group in the same order.
//
// Threads: one at a time, except find() and what the objects themselves allow. Failure: a version
// that failed leaves the objects as they are; the error is returned by the persist() that finishes
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "ipv/flush_thread.hpp"
#include "ipv/ipv_options.hpp"
#include "ipv/object.hpp"
#include "ipv/object_list.hpp"
#include "ipv/onlookers.hpp"
#include "ipv/version_check.hpp"
#include "pool/pool.hpp"

namespace perdure {

class ObjectSet {
 public:
  // Outlived by the pool, which was not restarted. One set at a time in a process.
  static Result<std::unique_ptr<ObjectSet>> open(Pool& pool, const IpvOptions& options);
  ~ObjectSet();  // as close(), without telling
  ObjectSet(const ObjectSet&) = delete;
  ObjectSet& operator=(const ObjectSet&) = delete;

  // [collective] `whole_pages`: nothing else lies in the object's pages.
  Status add(const std::string& name, void* address, std::size_t bytes, int tier, bool whole_pages);
  // [collective] Two arrays whose roles alternate (pair_object.hpp), in whole pages of their own.
  Status add_pair(const std::string& name, void* a, void* b, std::size_t bytes);
  // Local. The object `name`, or the pair if there is another array, is as long as `to` says, and
  // lies there, with the contents. Code::no_space and others leave all as it was.
  Status resize(const std::string& name, const ObjectMemory& to);
  // What an object is to the ranks together, if another number of them made the pool.
  Status say_ranks(const std::string& name, RankRule rule);
  // [collective]
  Result<std::uint64_t> restart();
  // [collective] The newest durable version: with lag 1 the one before that which is begun here.
  Result<std::uint64_t> persist();
  // [collective] Finishes the version under way, if there is one; the newest durable one.
  Result<std::uint64_t> finish();
  // [collective] Finishes the version under way, writes the report, and gives the objects back.
  Status close();

  // Local: waits for what runs beside the program, and, if this is the only rank, finishes the
  // version under way. A failure is returned until persist() has reported it.
  Status wait();
  // Local: what is queued for the helper is done. Failure: as wait().
  Status drain();
  // From here on early flushes are made beside the program.
  Status start_flush_thread(unsigned threads);
  // Of an object, or of any memory.
  Status flush_early(const void* address, std::size_t bytes);
  // As the object's; but no box where somebody may look at it (onlookers.hpp).
  perdure_ipv_answer box_begin(InPlaceObject& object, const perdure_ipv_box& box);
  void box_end(InPlaceObject& object, const perdure_ipv_box& box, bool past_cache) {
    if (object.box_end(box, past_cache)) queue_early_flush(object);
  }
  void touch(const void* address, std::size_t bytes);
  const ObjectList& list() const { return objects_; }
  // For who must know when memory is freed.
  ObjectList& list() { return objects_; }
  // Of a pair, the array that holds its contents now. Code::not_found: there is no such pair.
  Result<void*> alive_of(const std::string& name) const;
  bool started() const { return started_; }
  bool takes_boxes() const;  // until the next persistence point: some object is in STREAM
  bool lags() const { return surroundings_.lags; }
  std::uint64_t calls() const { return calls_; }  // of persist()
  const Pool& pool() const { return pool_; }

 private:
  ObjectSet(Pool& pool, const IpvOptions& options);
  Status check_new(const std::string& name, void* address, std::size_t bytes) const;
  Status check_pair(const std::string& name, void* a, void* b, std::size_t bytes) const;
  Status check_size(const InPlaceObject& object, const ObjectMemory& to) const;
  Status adopt(std::unique_ptr<InPlaceObject> object, bool spare_copy);
  Status decide_thread();
  Status decide_lag();
  Status agree_on_options();
  Status start_objects();
  Status start_object(std::size_t place);
  std::unique_ptr<InPlaceObject> copied_in_place_of(const InPlaceObject& object,
                                                    const ObjectMemory& memory, std::string why);
  Status put(std::size_t place, std::unique_ptr<InPlaceObject> object);
  Status copy_from_now_on(InPlaceObject& object, const ObjectMemory& to, std::string why,
                          const ResizeInPool& in_pool);
  Status hand_over();
  Status begin_accesses();
  Result<std::uint64_t> persist_now();
  CommitOutcome outcome_of(const Result<std::uint64_t>& committed) const;
  void begin_version();
  void finish_version();
  void queue_saves();
  Status finish_saves();
  Status compare_version(std::uint64_t version) const;
  void queue_early_flush(InPlaceObject& object);
  void report_ended();

  Pool& pool_;
  IpvOptions options_;
  ParallelWriter writer_;
  ObjectSurroundings surroundings_;
  ObjectList objects_;
  std::unique_ptr<FlushThread> thread_;
  Onlookers onlookers_;
  std::atomic<std::uint64_t> durable_version_{0};
  std::optional<VersionCheck> check_;
  bool under_way_ = false;  // a version is begun and not finished
  Status commit_failure_;   // of the version that was finished last: all ranks have one
  Status flush_failure_;    // of an early flush: this rank's
  std::uint64_t calls_ = 0;
  bool started_ = false;
};

// The set's objects and what was done for each, as JSON.
std::string ipv_report(const ObjectSet& set, std::uint64_t version);

}  // namespace perdure
