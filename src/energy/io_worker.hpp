// SPDX-License-Identifier: BSD-3-Clause
//
// I/O worker: one of the processes of a measurement, that reads or writes its part from beginning
// to end, as a checkpoint does; and all of them, that begin at the same time.
//
// What is written can't be compressed or deduplicated: every 512 bytes differ. Caches don't help:
// direct I/O, or fsync within the time that is measured; a read that is not direct has its pages
// dropped before.
//
// Threads: one. Failure: Status, with the path.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_handle.hpp"
#include "base/io_token.hpp"
#include "base/status.hpp"

namespace perdure::energy {

struct IoRequest {
  IoKind kind = IoKind::write;
  std::string path;
  std::uint64_t offset = 0;  // of a block device's part
  std::uint64_t bytes = 0;   // a multiple of 4096
  bool direct = false;
  bool sync = true;    // after writing, within the time
  bool create = true;  // a new file of its own; false: what is there is written over
  std::uint64_t seed = 1;
};

struct IoTimes {
  double start_s = 0;  // monotonic clock, the same in all processes
  double end_s = 0;
  double cpu_s = 0;  // of this process
};

class IoWorker {
 public:
  // Opens, and makes the buffer ready: none of it is measured.
  static Result<std::unique_ptr<IoWorker>> prepare(const IoRequest& request);
  ~IoWorker();
  IoWorker(const IoWorker&) = delete;
  IoWorker& operator=(const IoWorker&) = delete;

  Result<IoTimes> run();

 private:
  explicit IoWorker(const IoRequest& request) : request_(request) {}
  Status open();
  Status set_direct();
  Status transfer();
  void stamp(std::uint64_t position);

  IoRequest request_;
  FileHandle file_;
  std::byte* buffer_ = nullptr;
};

// Each request in a process of its own, all let go when all are ready; times in their order. `look`
// is called just before that, each quarter of a second, and when the last has ended. An error if
// one fails or is killed; the others are waited for.
Result<std::vector<IoTimes>> run_workers(const std::vector<IoRequest>& requests,
                                         const std::function<void()>& look);

}  // namespace perdure::energy
