// A device that behaves like another part: it adds the latency, commit latency and bandwidth of a
// row of the device table (model/device_table.hpp) to the device that it wraps.
//
//   virtual clock  (default, deterministic) the time that the part would have added is counted in
//                  counters().model_ns and nothing waits; callers add it to what they measured
//   real delay     the same time is spent spinning, in debts of at least 1 us, paid at fences;
//                  what was overpaid is reported
//
// The model, per call:  copy/flush of n bytes  n * sharers / bandwidth  + one write latency,
//                       fence                   commit latency.
// The time that the wrapped device really took is not subtracted: it is DRAM's, and part of the
// measured run. Not modelled: loads and stores of the application itself (they go to the wrapped
// device at its speed), queues inside the part, wear, banks, the cache's own evictions.
//
// Ranks of one node share the part through one token bucket in shared memory, `bucket_name`: in
// virtual mode it counts the sharers (each gets 1/sharers of the bandwidth: SPMD programs commit
// together); in real mode they draw tokens from it. Removed by the last rank that closes; a bucket
// left by killed ranks is found by its owners' dead process ids and reset.
#pragma once

#include <memory>
#include <string>

#include "base/status.hpp"
#include "model/device_table.hpp"
#include "pmem/device.hpp"

namespace perdure {

enum class DelayMode { virtual_clock, real_delay };

struct DelayOptions {
  DelayMode mode = DelayMode::virtual_clock;
  DeviceRow part;           // what is emulated
  std::string bucket_name;  // shm object shared by the ranks of a node; empty: not shared
};

Result<std::unique_ptr<Device>> wrap_with_delay(std::unique_ptr<Device> wrapped,
                                                const DelayOptions& options);

}  // namespace perdure
