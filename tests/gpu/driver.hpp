// SPDX-License-Identifier: BSD-3-Clause
//
// The state of the CUDA driver without a GPU: contexts, streams that each have a thread, events,
// modules. Which memory there is, is in ranges.hpp.
//
// One lock guards all of it, and one condition says that something changed: a piece of work is
// done, a stream goes. The threads of streams run work without the lock. Nothing is ever freed
// that a thread could still see at the end of the process: the driver itself is not destroyed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cuda_driver.h"
#include "ptx_text.hpp"
#include "ranges.hpp"
#include "settings.hpp"

// Of one stream, or of several that wait for each other's events.
struct Capture {
  int mode = 0;  // 0 global, 1 of this thread, 2 relaxed
  std::thread::id by;
  CudaStream* origin = nullptr;
  bool is_invalid = false;
  std::size_t nodes = 0;
};

struct CudaContext {
  int device = 0;
  bool is_primary = false;
  bool is_alive = false;
  std::size_t retained = 0;
  int broken = CUDA_OK;  // what every later call returns
  std::shared_ptr<CudaStream> null_stream;
};

struct Work {
  std::function<void()> run;
  std::function<bool()> may_begin;  // asked under the lock; empty: at once
};

struct CudaStream {
  CudaContext* context = nullptr;
  bool is_null = false;
  bool is_blocking = false;  // with the null stream
  int priority = 0;
  std::deque<Work> queue;
  std::uint64_t submitted = 0;
  std::uint64_t done = 0;
  bool is_gone = false;
  bool is_running = false;
  std::shared_ptr<Capture> capture;
};

struct CudaEvent {
  CudaContext* context = nullptr;
  std::uint64_t recorded = 0;
  std::uint64_t completed = 0;
  std::shared_ptr<Capture> capture;  // that it was last recorded in
};

struct CudaModule {
  CudaContext* context = nullptr;
  fake::PtxModule text;
  std::vector<std::unique_ptr<CudaFunction>> functions;
};
struct CudaFunction {
  CudaModule* module = nullptr;
  const fake::PtxKernel* kernel = nullptr;
  std::string name;
};
struct CudaGraph {
  std::size_t nodes = 0;
};

namespace fake {

using Lock = std::unique_lock<std::mutex>;

struct Driver {
  std::mutex lock;
  std::condition_variable changed;
  bool is_initialised = false;
  bool is_held = false;                                // no stream begins anything
  std::vector<std::unique_ptr<CudaContext>> contexts;  // the primary ones first, one a device
  // Those that are destroyed, too, until what is in them is done.
  std::map<CudaStream*, std::shared_ptr<CudaStream>> streams;
  std::map<CudaEvent*, std::shared_ptr<CudaEvent>> events;
  std::map<CudaModule*, std::shared_ptr<CudaModule>> modules;
  std::map<CudaFunction*, std::shared_ptr<CudaModule>> functions;  // and what keeps them
  std::map<CudaGraph*, std::unique_ptr<CudaGraph>> graphs;
  std::vector<std::weak_ptr<Capture>> captures;
  std::uint64_t streams_made = 0;
  std::uint64_t copies = 0;
  Ranges ranges;
};
Driver& driver();

// The contexts of this thread, the current one last.
std::vector<CudaContext*>& current_contexts();
CudaContext* current_context();

// ---- streams.cpp. Under the lock.

std::shared_ptr<CudaStream> make_stream(CudaContext& context);
// The stream of a handle, of which null is the current context's; nullptr: there is none.
CudaStream* stream_of(CudaStreamHandle handle);
// Work after all that is in the stream, or a node of what it captures.
int submit(CudaStream& stream, Work work);
// Until all that is in the stream now is done. Code of the context.
int wait_for(Lock& lock, CudaStream& stream);
// Until all streams of the context are done with what is in them, or the context is lost.
int wait_for_all(Lock& lock, const CudaContext& context);
// CUDA_CAPTURE_UNSUPPORTED, and the capture is spoilt, if a capture forbids this thread such calls.
int unsafe_while_capturing();
// Whose captures forbid calls of this thread: 0 all threads', 1 its own, 2 none.
int& capture_mode_of_thread();
// The same if this stream is being captured.
int refuse_while_captured(CudaStream& stream);
void break_context(CudaContext& context, int code);
// What its streams have not begun is dropped, and they end.
void end_streams(Lock& lock, const CudaContext& context);

// ---- copies.cpp

// A place in memory of a device or of the host, whose bytes nobody but the driver may look at.
using Place = std::uint64_t;
int submit_copy(Lock& lock, CudaStreamHandle stream, Place to, Place from, std::size_t size_bytes,
                bool wait);
int submit_fill(Lock& lock, CudaStreamHandle stream, Place to, unsigned char byte,
                std::size_t size_bytes, bool wait);

// ---- Each call of the driver

enum class Needs : std::uint8_t { nothing, initialised, context };
int code_now(Needs needs);

// One call: counted, noted, killed or failed as the settings say, else `body` under the lock.
template <typename Body>
int call(const char* name, Needs needs, const Body& body) {
  const Called called = settings().begin_call(name);
  if (called.must_fail) {
    if (called.is_sticky && current_context() != nullptr) {
      const Lock lock(driver().lock);
      break_context(*current_context(), called.code);
    }
    return settings().end_call(called, name, called.code);
  }
  int code = CUDA_OK;
  {
    Lock lock(driver().lock);
    code = code_now(needs);
    if (code == CUDA_OK) code = body(lock);
  }
  return settings().end_call(called, name, code);
}

}  // namespace fake

#define FAKE_EXPORTED extern "C" __attribute__((visibility("default")))
