// SPDX-License-Identifier: BSD-3-Clause
//
// Twin stores: what VersionedArray::write() has stored to the working copy of a twin array since
// the last version.
//
//   from the host  past the cache, so that it needs no flush. One range is remembered: rows that
//                  follow each other make it grow. Others are flushed again, which costs time and
//                  nothing else
//   from a GPU     by its copy engine, straight to the pool's mapping if that can be registered.
//                  The program's stream goes on after the transfer, and the host at once. Else
//                  through a ring in the host's memory, for which the host waits
//
// Invariant
//   pool.D5  A version is saved only when settle() has returned success: each transfer that was
//       begun has arrived. When it has returned, or clear() or the destructor, nothing is stored
//       to the pool any more.
//
// Threads: as the array; settle() may be the saver's. Failure: as Accelerator says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>

#include "base/status.hpp"
#include "device/accelerators.hpp"
#include "pmem/page_ranges.hpp"
#include "pool/array_entry.hpp"
#include "pool/array_surroundings.hpp"

namespace perdure {

class TwinStores {
 public:
  TwinStores() = default;
  ~TwinStores() { clear(); }
  TwinStores(const TwinStores&) = delete;
  TwinStores& operator=(const TwinStores&) = delete;

  // Whose memory the elements are; null: the host's. The driver is asked only where the program has
  // named a stream of its own, in whose order they are.
  static Result<Accelerator*> source(const ArraySurroundings& with, const std::byte* elements,
                                     std::uint64_t bytes);

  void add(std::uint64_t first_byte, std::uint64_t count_bytes);
  // What the stream leaves at `elements`, to byte `first_byte` of a copy. Without bytes it has the
  // copies of the array registered, for transfers of the program's own.
  Status transfer(const ArraySurroundings& with, Accelerator& accelerator, const ArrayEntry& entry,
                  std::uint32_t copy, std::uint64_t first_byte, std::uint64_t bytes,
                  const std::byte* elements);
  Status settle();
  void clear();

  const ByteRange& streamed() const { return streamed_; }

 private:
  // An accelerator that has transferred, and its last transfer.
  struct Source {
    Accelerator* accelerator = nullptr;
    AcceleratorEvent done;
    bool under_way = false;
    // Whether the copies that begin there are registered.
    std::uint64_t first_offset = 0;
    bool registered = false;
  };
  Result<Source*> source_of(const ArraySurroundings& with, Accelerator& accelerator,
                            const ArrayEntry& entry);
  static Status store(const ArraySurroundings& with, Source& source, std::uint64_t offset,
                      std::uint64_t bytes, const std::byte* elements);

  ByteRange streamed_;
  std::list<Source> sources_;
};

}  // namespace perdure
