// SPDX-License-Identifier: BSD-3-Clause
//
// The recorder of this process: begins before main(), ends after the program's last destructor.
//
//   start      by a constructor, or by the first instrumented code if that runs before: reads
//              PERDURE_TRACE; without it every thread's cache always hits, and that is all
//   again      the program is started once more without randomised addresses, so that its trace
//              can be reproduced (personality(2), ADDR_NO_RANDOMIZE)
//   helper     is there whenever something is recorded, so that the program finds the same
//              addresses; it has work where there is a processor for it (recorder.hpp)
//   finish     by a destructor, and by _exit(), _Exit() and quick_exit(); a process that dies
//              otherwise leaves a trace without its end, which no reader takes for a whole one
//   fork       the child records nothing, unless it starts another instrumented program
//
// Invariant: a thread inside of the recorder is `busy`, and what its signal handlers do then is
// counted as lost, not recorded. Threads: all. Failure: a request that can't be granted ends the
// program before main() with exit code 2 and a sentence on stderr; later errors are reported
// at the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perdure/perdure.h"
#include "perdure/perdure_trace_abi.h"
#include "trace/recorder/recorder.hpp"

namespace perdure::trace {

struct ThreadState {
  MissPath* path;  // of the stream, where it may be taken; entries_x86_64.S knows the places
  Stream* stream;
  bool busy;
  bool has_ended;
  std::uint8_t rounds;  // of thread-specific destructors
};

static_assert(offsetof(ThreadState, path) == 0 && offsetof(ThreadState, busy) == 16);

// Plain thread-local storage: it has no constructor, so that it can be used at any moment.
extern "C" __thread ThreadState thread_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Begins this thread if it has not; its stream, null where nothing is recorded.
Stream* begin_stream();

void count_lost();

// One access, or a range of bytes.
inline void record_access(std::uint64_t address, std::uint64_t bytes, bool is_write) {
  Stream* stream = thread_state.stream;
  if (stream == nullptr) [[unlikely]]
    stream = begin_stream();
  if (stream == nullptr || bytes == 0) [[unlikely]]
    return;
  if (thread_state.busy) [[unlikely]] {
    count_lost();
    return;
  }
  thread_state.busy = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  stream->access(address, bytes, is_write);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread_state.busy = false;
}

}  // namespace perdure::trace
