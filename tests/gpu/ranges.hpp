// SPDX-License-Identifier: BSD-3-Clause
//
// The memory that the fake driver knows: of devices, managed, of the host, and registered.
//
// Memory of a device has an address at which nothing can be accessed, as a processor cannot
// access a GPU's, and another mapping that only the driver uses. So has shared memory of the host
// that is registered: a device stores to the pages that were there when they were registered,
// whatever has become of the mapping. (Private memory cannot be mapped twice; it is accessed
// through the kernel, which asks nobody for permission either.)
//
// Refused as by the real driver: what overlaps what is registered, what is not mapped, files of a
// disk, mappings that are read-only and are not said to be. Memory that was unmapped while it was
// registered makes the next call that asks for memory fail (CUDA_ALREADY_MAPPED).
//
// Threads: the caller's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

struct CudaContext;

namespace fake {

enum class Kind : std::uint8_t { of_device, managed, of_host, registered };

// A line of /proc/self/maps, or a part of it.
struct Mapping {
  std::uint64_t begin;
  std::uint64_t end;
  bool may_store;
  bool is_shared;
  std::uint64_t offset;  // of begin, in its file
  std::string device;    // of the file
  std::uint64_t inode;   // 0: no file
  std::string path;
};
// What of [begin, end) is mapped, in order.
std::vector<Mapping> mappings_of(std::uint64_t begin, std::uint64_t end);

struct Range {
  Kind kind;
  std::uint64_t begin;
  std::size_t size_bytes;
  CudaContext* context;
  bool may_store = true;
  // What the driver maps: [alias, …) has the bytes from alias_begin on. Registered memory has one
  // for each mapping.
  struct Alias {
    std::uint64_t begin;
    std::uint64_t end;
    std::byte* at;  // nullptr: private memory
  };
  std::vector<Alias> aliases;
  std::vector<Mapping> mappings;  // of registered memory, as they were then
  std::uint64_t number = 0;       // each has another one

  bool is_of_gpu() const { return kind == Kind::of_device || kind == Kind::managed; }
};

class Ranges {
 public:
  int allocate(Kind kind, std::size_t size_bytes, CudaContext* context, std::uint64_t* at);
  int release(std::uint64_t at, bool of_gpu);
  int add_registered(std::uint64_t at, std::size_t size_bytes, bool read_only,
                     CudaContext* context);
  int remove_registered(std::uint64_t at);
  void release_all_of(const CudaContext* context);

  // The one that has the address.
  const Range* find(std::uint64_t at) const;
  // Whether registered memory was unmapped since, or is something else now.
  bool something_went() const;
  std::uint64_t device_bytes(int device) const;
  std::uint64_t count(Kind kind) const;
  std::uint64_t registered_bytes() const;

  // Where the driver finds the byte, and how many follow it there; nullptr for private memory.
  static std::byte* look(const Range& range, std::uint64_t at, std::size_t* follow);

 private:
  std::map<std::uint64_t, Range> ranges_;
  std::uint64_t made_ = 0;
};

}  // namespace fake
