// SPDX-License-Identifier: BSD-3-Clause
//
// Buffer memory: whether memory that the application gives can be read and written, and who stores
// to it.
//
// The kernel's list of mappings says so without touching a byte: a probe by loads and stores would
// bring every page of a buffer into memory, and the one by process_vm_readv() fails for memory of
// devices that the processor can read.
//
// Threads: any. Where /proc/self/maps can't be read nothing is refused, and nothing is believed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.hpp"

namespace perdure {

enum class Stores : std::uint8_t {
  by_this_mapping,  // private pages of the usual size
  by_others,        // perhaps of other processes, other mappings, or a device: shared memory
};

// Code::invalid_argument names the first byte that can't be read and written, and why. To
// `reach_bytes` goes how long it could be, to the end of the last mapping that was looked at.
Result<Stores> check_buffer_memory(const std::byte* buffer, std::uint64_t size_bytes,
                                   std::uint64_t* reach_bytes = nullptr);

// Whether all of it is still mapped; costs a system call, whatever the size.
bool is_mapped(const std::byte* buffer, std::uint64_t size_bytes);

// Whether something may store to memory of this process so that no page tracker sees it: the kernel
// or a device, through pages that are pinned (io_uring's registered buffers, InfiniBand), or a GPU.
// The answer that comes after pages were protected holds until the next time: pages that are pinned
// later count as written.
bool stores_may_go_unseen();

}  // namespace perdure
