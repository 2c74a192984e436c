// SPDX-License-Identifier: BSD-3-Clause
//
// A device that behaves like another memory: it adds the latency, commit latency and bandwidth of a
// memory model (model/device_table.hpp) to the device that it wraps.
//
//   virtual clock  (default, deterministic) the time that the model would have added is counted in
//                  counters().model_ns and nothing waits; callers add it to what they measured
//   wait           the same time is spent spinning, in debts of at least 1 us, paid at fences;
//                  what was overpaid is reported
//   drain          as wait, but the memory works off writes from the moment they begin, while the
//                  program goes on: a fence waits for what is left of them. So does memory of that
//                  bandwidth; wait charges as if nothing overlapped. Where the model says how many
//                  bytes its queue holds (write_queue_bytes), a write returns when no more of it is
//                  left; otherwise the queue has no end, which favours whoever writes in bursts
//
// The model:  copy or flush of n bytes   n * sharers / bandwidth
//             fence                      commit latency, and one write latency: writes are
//                                        pipelined, so that only the last one is waited for
// where n is rounded outwards to the granules of the model. Virtual time is summed in picoseconds,
// so it is the same number for the same bytes and fences, however the bytes were split and from any
// thread. With several copying threads each adds the latencies of its own fence.
// A memory that drains works while the wrapped device takes its time; otherwise that time, which is
// DRAM's and part of the measured run, is not subtracted. Loads and stores of the application
// itself go to the wrapped device at its speed; of those past the cache the device hears in
// portions. It can be charged for the bytes of them that a simulated cache has counted: Accesses,
// below. Not modelled: wear, banks, the cache's own evictions beyond that.
//
// Ranks of one node share the memory through one token bucket in shared memory, `bucket_name`: in
// virtual mode it counts the sharers (each gets 1/sharers of the bandwidth: SPMD programs commit
// together); in real mode they draw tokens from it. Removed by the last rank that closes; a bucket
// left by killed ranks is found by its owners' dead process ids and reset. For a virtual time that
// is exact, all ranks open before the first of them writes, and close after the last has written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "model/device_table.hpp"
#include "pmem/device.hpp"

namespace perdure {

enum class DelayMode { virtual_clock, wait, drain };

struct DelayOptions {
  DelayMode mode = DelayMode::virtual_clock;
  MemoryModel model;        // what is emulated
  std::string bucket_name;  // shm object shared by the ranks of a node; empty: not shared
};

Result<std::unique_ptr<Device>> wrap_with_delay(std::unique_ptr<Device> wrapped,
                                                const DelayOptions& options);

// The same for a memory model, named as find_device() takes it.
Result<std::unique_ptr<Device>> emulate_memory(std::unique_ptr<Device> wrapped,
                                               const std::string& model, DelayMode mode,
                                               const std::string& bucket_name);

// What a run that waits really did. A report with an overshoot of more than 2 % of what was
// paid comes from a machine too busy for it. In virtual mode nothing is paid.
struct DelayReport {
  std::uint64_t owed_ns = 0;       // by the model, since the device was opened
  std::uint64_t paid_ns = 0;       // of that, spun for; the rest is a debt below 1 us
  std::uint64_t overshoot_ns = 0;  // spun beyond what was paid
  std::uint64_t stalled_ns = 0;    // writes waited for room in a full queue
};

// What a part of a program needs of the memory by itself: bytes that its caches lack and load, and
// bytes that they put out. The memory serves them as it drains writes: from begin_accesses() on,
// after what it has to do already, at the model's bandwidths of reading and writing, and while the
// program computes; end_accesses() waits for what is left. So that part takes no less time than the
// memory needs for it, which is true if caches fetch ahead perfectly, and too little otherwise;
// latencies are not charged. DelayMode::wait pays at the next fence, as if nothing overlapped.
struct Accesses {
  std::uint64_t loaded_bytes = 0;
  std::uint64_t stored_bytes = 0;

  bool any() const { return loaded_bytes != 0 || stored_bytes != 0; }
};

// Code::unsupported: `device` does not come from wrap_with_delay(), or its queue of writes has an
// end: they would wait for all of the part's loads, of which most come later.
Status begin_accesses(Device& device, const Accesses& accesses);
void end_accesses(Device& device);

// Nothing when `device` does not come from wrap_with_delay().
std::optional<DelayReport> delay_report(const Device& device);

}  // namespace perdure
