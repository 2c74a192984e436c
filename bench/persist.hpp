// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of bench_persist share: where it measures, how often, and devices made of plain
// functions, so that every contender is called in the same way, by the same threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fact.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"

namespace perdure::bench {

struct PersistOptions {
  bool quick = false;
  std::string directory = "/dev/shm";
  std::size_t largest_bytes = std::size_t{256} << 20U;
  std::vector<unsigned> threads = {1, 2};
};

// How a contender copies, flushes and fences. All three may be called from several threads.
struct Verbs {
  void (*copy)(void* destination, const void* source, std::size_t count) = nullptr;
  void (*flush)(const void* address, std::size_t count) = nullptr;
  void (*fence)() = nullptr;
};

// A device on the memory of another one, with other verbs.
std::unique_ptr<Device> device_with_verbs(const Device& memory, const Verbs& verbs);

// pmem_memcpy_nodrain, pmem_flush and pmem_drain, which together are pmem_memcpy_persist and
// pmem_persist; no verbs where libpmem was not there when this was built.
Verbs libpmem_verbs();

// A file of `size_bytes` in the directory, unlinked at once: gone when the device is.
Result<std::unique_ptr<Device>> open_scratch(const PersistOptions& options, std::size_t size_bytes);

// Takes [begin, begin + count) out of all caches.
void evict(const std::byte* begin, std::size_t count);

Result<double> nanoseconds_of(const std::function<Status()>& work);

// Of the case NAME/SIZE/THREADS.
Fact fact_of(const std::string& name, const std::string& metric, const std::string& unit,
             std::size_t size_bytes, unsigned threads);

// They print their facts as they go.
Status measure_arrays(const PersistOptions& options);
Status measure_copies(const PersistOptions& options);
Status measure_flushes(const PersistOptions& options);
Status measure_sparse(const PersistOptions& options);

}  // namespace perdure::bench
