// SPDX-License-Identifier: BSD-3-Clause
//
// Twin stores: what VersionedArray::write() has stored to the working copy of a twin array since
// the last version.
//
//   from the host  past the cache, so that it needs no flush. One range is remembered: rows that
//                  follow each other make it grow. Others are flushed again, which costs time and
//                  nothing else
//   from a GPU     by its copy engine, straight to the pool's mapping if that can be registered.
//                  The program's stream goes on after the transfer, and the host at once if nobody
//                  but the GPU can store to the elements. Else, or through a ring in the host's
//                  memory, the host waits
//
// Invariants
//   pool.D5  A version is saved only when settle() has returned success: each transfer that was
//       begun has arrived. When it has returned, or clear() or the destructor, nothing is stored
//       to the pool any more.
//   pool.D6  What the processor can store to has been read when write() returns. Stores to the same
//       bytes, whoever makes them, arrive in the order of the calls.
//   pool.D7  What of streamed() was stored last was stored past the cache. A GPU's transfer may be
//       in the cache, so it is no part of that.
//
// Threads: as the array; settle() may be the saver's. Failure: as Accelerator says. A transfer that
// failed fails settle() until clear(), whoever has waited for it.
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
  // What is to be stored, and whose memory it is in.
  struct Elements {
    const std::byte* at = nullptr;
    std::uint64_t bytes = 0;
    Accelerator* accelerator = nullptr;  // null: the host's alone
    MemoryKind kind = MemoryKind::host;
  };

  TwinStores() = default;
  ~TwinStores() { clear(); }
  TwinStores(const TwinStores&) = delete;
  TwinStores& operator=(const TwinStores&) = delete;

  // The driver is asked only where the program has named a stream of its own, in whose order the
  // elements are.
  static Result<Elements> look_at(const ArraySurroundings& with, const void* elements,
                                  std::uint64_t bytes);

  // From the host's memory to byte `first_byte` of a copy.
  Status store(const ArraySurroundings& with, const ArrayEntry& entry, std::uint32_t copy,
               std::uint64_t first_byte, const Elements& elements);
  // From an accelerator's, what the stream leaves there; the copy is registered when it is used
  // first. Without bytes it has that of the last version registered, for the program to read.
  Status transfer(const ArraySurroundings& with, const ArrayEntry& entry, std::uint32_t copy,
                  std::uint64_t first_byte, const Elements& elements);
  Status settle();
  void clear();

  const ByteRange& streamed() const { return streamed_; }

 private:
  // An accelerator that has transferred, and its last transfer.
  struct Source {
    Accelerator* accelerator = nullptr;
    AcceleratorEvent done;
    ByteRange under_way;    // all transfers are within it; empty: none is
    bool registers = true;  // the copies that it transfers to; none was refused
  };
  Result<Source*> source_of(const ArraySurroundings& with, Accelerator& accelerator,
                            const ArrayEntry& entry, std::uint32_t copy);
  Status pass(const ArraySurroundings& with, Source& source, std::uint64_t offset,
              const Elements& elements);
  static Status begin(const ArraySurroundings& with, Source& source, std::uint64_t offset,
                      const Elements& elements);
  Status settle(Source& source);
  Status settle_others(const ByteRange& range, const Source* own);
  void add(const ByteRange& range);
  void take_out(const ByteRange& range);

  ByteRange streamed_;
  bool unfenced_ = false;  // the host's stores past the cache may not be where a GPU's come
  std::list<Source> sources_;
  Status failed_;
};

}  // namespace perdure
