// SPDX-License-Identifier: BSD-3-Clause
//
// Change record: what a part knows of the changes that its node's processes make to the cached
// file, by which recovery tells whether somebody else changed it (cache.P15 of
// part_contradiction.hpp).
//
//   cache.P14 A part knows the stamp that the file had after the last change that a process of the
//       node made to it, and whether one was under way:
//   cache.K1  Whoever changes the file says so first: begin() sets its bit of `changing`, and
//       note() says when a change begins. Then it changes the file, then record() or end() records
//       the stamp (file_stamp.hpp) that the file has, and end() takes the bit back after the last
//       record. So where no bit is set, a file with another stamp was changed by somebody else;
//       where one is, the file may have a change that is not recorded, as its process was killed in
//       between.
//   cache.K2  A record is made under a lock, and the stamp is asked for under it: it is never older
//       than the record before. It goes to the place that is not the record yet, which one store of
//       the lock's word makes it.
//   cache.K3  As soon as anything in the part may outlast a power failure (`durable`), a bit is
//       durable before the change, and the record before the bit goes.
//
// Threads: any; the processes of the node share the part. A process that dies is cleaned up after
// as everywhere in a part (cache.P10). Failure: what could not be recorded stays under way.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/status.hpp"
#include "cache/backing_file.hpp"
#include "cache/part_peers.hpp"
#include "parts/file_stamp.hpp"
#include "parts/part_format.hpp"
#include "pmem/device.hpp"

namespace perdure {

class ChangeRecord {
 public:
  // `state` is at `state_offset` of the device.
  ChangeRecord(Device& device, std::uint64_t state_offset, PartPeers& peers);

  void set_file(const BackingFile* file) { file_ = file; }
  // The file is another one than the cached one: what happens to it is not recorded.
  void leave() { recording_ = false; }

  // Around all that changes the cached file. May be nested.
  Status begin();
  // `begun_ns`: records a change that began then, as record() would before it.
  Status end(std::uint64_t begun_ns = 0);
  // Between the two, just before a change. Returns the time.
  std::uint64_t note() const;
  // After a change that began then.
  Status record(std::uint64_t begun_ns) {
    return recording_ ? store_stamp(begun_ns) : Status::success();
  }

  // Before the first thing that may outlast a power failure.
  Status expect_power_failure();

  // Of a process that has died: what it changed is in the file by now.
  Status settle(std::uint32_t number);
  void unlock_if_of(std::uint32_t number);
  // Nobody else uses the part.
  void unlock();
  // By one process alone, when the file has all: the record is its stamp, and nobody's change is
  // under way.
  Status forget_dead();

  FileEvidence evidence() const;

 private:
  void flush() const;
  Status lock(std::uint64_t& turn);
  Status store_stamp(std::uint64_t begun_ns);

  Device& device_;
  std::uint64_t state_offset_;
  PartStateFormat& state_;
  PartPeers& peers_;
  const BackingFile* file_ = nullptr;
  bool recording_ = true;
  std::mutex mutex_;
  std::uint64_t under_way_ = 0;  // changes of this process
};

}  // namespace perdure
