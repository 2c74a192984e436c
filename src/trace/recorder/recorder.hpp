// Recorder: the trace of one process, from the streams of its threads.
//
// Invariants: streams are numbered from 0 in the order in which threads began; a thread that ended
// leaves its stream, cache and number to the next one, as it would a core. Accesses of one thread
// stay in their order; those of several are merged window by window. After finish() nothing
// is written any more. Threads: all calls, except where said. Failure: the first error of the
// writer is kept and returned by finish().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "trace/recorder/options.hpp"
#include "trace/recorder/stream.hpp"
#include "trace/writer.hpp"

namespace perdure::trace {

class Recorder {
 public:
  // Makes the trace `path`; the options' own path is not looked at.
  static Result<std::unique_ptr<Recorder>> create(const RecorderOptions& options,
                                                  const std::string& path);

  Stream& begin_thread();
  void end_thread(Stream& stream);

  // Code::wrong_state where a region is open already, or none is.
  Status begin_region(const std::string& name);
  Status end_region();

  // Writes what the streams hold and the footer. What threads do from now on is not recorded.
  Status finish();

  // Around fork(), so that the child finds nothing half-done; the child calls abandon(), after
  // which nothing of it reaches the file.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void abandon() { is_open_ = false; }

  const Header& header() const { return options_.header; }

 private:
  Recorder(const RecorderOptions& options, std::unique_ptr<Writer> writer);
  static void make_room(void* context, Stream& stream);
  static void wait(void* context);
  void flush_all();
  bool is_ours() const;
  bool is_wanted() const;

  const RecorderOptions options_;
  const unsigned page_shift_;
  const int process_;
  std::mutex mutex_;  // of everything below
  std::unique_ptr<Writer> writer_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> idle_;
  std::string region_;  // empty: none is open
  bool is_open_ = true;
  std::uint64_t began_ns_;
};

}  // namespace perdure::trace
