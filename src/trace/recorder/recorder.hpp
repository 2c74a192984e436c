// SPDX-License-Identifier: BSD-3-Clause
//
// Recorder: the trace of one process, from the streams of its threads.
//
// A thread appends its accesses to a batch, and hands it over when it is full; batches go through
// their streams' windows into the writer in the order in which they were handed over. The
// helper, a thread of the recorder, does that; where there is no helper or it lags, the thread that
// finds no free batch does: memory is bounded, and nobody depends on the helper.
//
// Invariants, and those of batches.hpp: accesses of one thread stay in their order, and its records
// are the same with and without helper; those of several threads are merged batch by batch. After
// finish() nothing is written any more.
// Threads: all calls, except where said. Locks: `writing_` before that of the batches. Failure: the
// first error of the writer is kept and returned by finish().
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/status.hpp"
#include "trace/recorder/batches.hpp"
#include "trace/recorder/options.hpp"
#include "trace/recorder/stream.hpp"
#include "trace/writer.hpp"

namespace perdure::trace {

class Recorder {
 public:
  // Makes the trace `path`; the options' own path is not looked at.
  static Result<std::unique_ptr<Recorder>> create(const RecorderOptions& options,
                                                  const std::string& path);
  ~Recorder();  // no thread records any more

  // Makes the helper, before the first thread begins. `begin` is its first call. Without `is_used`
  // it does nothing: a thread changes the addresses of what the program allocates, and a trace
  // must not depend on whether there was a processor for the helper. Where the system refuses a
  // thread there is none.
  void start_helper(bool is_used, void (*begin)());

  Stream& begin_thread();
  void end_thread(Stream& stream);

  // Code::wrong_state where a region is open already, or none is.
  Status begin_region(const std::string& name);
  Status end_region();

  // Writes what the streams hold and the footer. What threads do from now on is not recorded.
  Status finish();

  // Around fork(), so that the child finds nothing half-done; the child calls abandon(), after
  // which nothing of it reaches the file.
  void lock();
  void unlock();
  void abandon();

  const Header& header() const { return options_.header; }
  std::size_t batches() { return batches_.made(); }  // memory of what nobody has written

 private:
  Recorder(const RecorderOptions& options, std::unique_ptr<Writer> writer);
  static bool make_room(void* context, Stream& stream);
  static void* run_helper(void* context);
  void help();
  void stop_helper();
  bool write_next_batch();
  void write_batch(WordBatch& batch, const std::uint64_t* end);
  void flush_window(Stream& stream);
  void flush_all();
  bool is_ours() const;
  bool is_wanted() const;

  const RecorderOptions options_;
  const int process_;
  Batches batches_;

  std::mutex writing_;  // of the writer, the windows, and these
  std::unique_ptr<Writer> writer_;
  std::string region_;  // empty: none is open
  bool is_open_ = true;

  pthread_t helper_ = {};
  void (*begin_helper_)() = nullptr;
  bool has_helper_ = false;
  std::uint64_t began_ns_;
};

}  // namespace perdure::trace
