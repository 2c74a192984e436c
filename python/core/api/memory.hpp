// SPDX-License-Identifier: BSD-3-Clause
//
// The memory of numpy arrays. It lives as long as any array on it does, whatever becomes
// of the pool, so that no array is ever a dangling pointer.
//
//   own memory   of arrays in copy and log mode: their buffer, which the pool only reads and fills
//   pool views   of arrays in twin and flush mode, which are in the pool's file: a second mapping
//                of the same pages, because the library unmaps the first one when the pool is
//                closed. Then each view that an array still needs becomes a copy of its own
//                (detach), which is in no pool
//
// Threads: calls hold the interpreter's lock. Failure: Failure is thrown.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace perdure::python {

// Pages mapped here, unmapped at the end.
class Pages {
 public:
  Pages() = default;
  Pages(void* begin, std::size_t size_bytes) : begin_(begin), size_bytes_(size_bytes) {}
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&&) = delete;

  std::byte* begin() const { return static_cast<std::byte*>(begin_); }
  std::size_t size_bytes() const { return size_bytes_; }
  // What is mapped here is from now on the caller's.
  void release() { size_bytes_ = 0; }

 private:
  void* begin_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// Zeroed, whole pages, touched.
Pages allocate_pages(std::size_t size_bytes);

// Memory that arrays share: `begin` is inside `pages`, or the program's own, which is `lent`.
struct SharedMemory {
  Pages pages;
  std::byte* begin = nullptr;
  std::size_t size_bytes = 0;
  std::shared_ptr<Py_buffer> lent = nullptr;
};

std::shared_ptr<SharedMemory> allocate(std::size_t size_bytes);

// The memory of a contiguous object with the buffer protocol.
std::shared_ptr<SharedMemory> borrow(nanobind::handle object, bool read_only);

// The same, or the address and owner of `size_bytes` bytes that need not be the processor's, as a
// tuple.
std::shared_ptr<SharedMemory> borrow_any(nanobind::handle object, std::size_t size_bytes);

// A view of `size_bytes` bytes that a pool has mapped at `mapped`.
std::shared_ptr<SharedMemory> view_of_pool(void* mapped, std::size_t size_bytes);

// Pages that hold what `view` holds now.
Pages copy_of(const SharedMemory& view);

// Puts `copy` in the place of the view, at its address, in one step.
void detach(SharedMemory& view, Pages copy);

// What Python sees of it: an object with the buffer protocol.
struct Memory {
  std::shared_ptr<SharedMemory> shared;
  bool read_only = false;
};

void bind_memory(nanobind::module_& api);

}  // namespace perdure::python
