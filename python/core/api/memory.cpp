// SPDX-License-Identifier: BSD-3-Clause
#include "api/memory.hpp"

#include <perdure/perdure.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "api/calls.hpp"

namespace nb = nanobind;

namespace perdure::python {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20U;

std::size_t whole_pages(std::size_t size_bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (std::max<std::size_t>(size_bytes, 1) + page - 1) / page * page;
}

[[noreturn]] void refuse(const char* what, std::size_t size_bytes) {
  const std::string why = std::strerror(errno);
  throw Failure{PERDURE_E_NO_SPACE,
                std::string(what) + " of " + std::to_string(size_bytes) + " bytes: " + why};
}

// Unused addresses whose distance from `like` is a multiple of a huge page, so that the same pages
// may be huge in both places.
Pages reserve_like(const void* like, std::size_t size_bytes) {
  const std::size_t reserved = size_bytes + huge_page_bytes;
  void* begin =
      ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) refuse("addresses for a view", size_bytes);
  const auto wanted = reinterpret_cast<std::uintptr_t>(like) % huge_page_bytes;
  const auto is = reinterpret_cast<std::uintptr_t>(begin) % huge_page_bytes;
  const std::size_t skipped = (wanted + huge_page_bytes - is) % huge_page_bytes;
  auto* first = static_cast<std::byte*>(begin) + skipped;
  if (skipped != 0) ::munmap(begin, skipped);
  if (skipped != huge_page_bytes) ::munmap(first + size_bytes, huge_page_bytes - skipped);
  return {first, size_bytes};
}

// The system call itself: UCX, which MPIs load, puts a mremap() of its own in the place
// of libc's, and that one does not pass the new address on.
bool remap(void* from, std::size_t old_bytes, std::size_t new_bytes, void* to) {
  return ::syscall(SYS_mremap, from, old_bytes, new_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1;
}

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  const Memory* memory = nb::inst_ptr<Memory>(nb::handle(object));
  return PyBuffer_FillInfo(view, object, memory->shared->begin,
                           static_cast<Py_ssize_t>(memory->shared->size_bytes),
                           memory->read_only ? 1 : 0, flags);
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

Pages::~Pages() {
  if (size_bytes_ != 0) ::munmap(begin_, size_bytes_);
}

Pages::Pages(Pages&& other) noexcept
    : begin_(other.begin_), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Pages allocate_pages(std::size_t size_bytes) {
  const std::size_t mapped_bytes = whole_pages(size_bytes);
  void* begin =
      ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) refuse("memory for an array", size_bytes);
  ::madvise(begin, mapped_bytes, MADV_HUGEPAGE);  // a hint; refused on some kernels
  return {begin, mapped_bytes};
}

std::shared_ptr<SharedMemory> allocate(std::size_t size_bytes) {
  Pages pages = allocate_pages(size_bytes);
  std::byte* begin = pages.begin();
  std::memset(begin, 0, pages.size_bytes());  // no commit is to pay for page faults
  return std::make_shared<SharedMemory>(std::move(pages), begin, size_bytes);
}

std::shared_ptr<SharedMemory> borrow(nb::handle object, bool read_only) {
  auto taken = std::make_unique<Py_buffer>();
  const int flags = PyBUF_C_CONTIGUOUS | (read_only ? 0 : PyBUF_WRITABLE);
  if (PyObject_GetBuffer(object.ptr(), taken.get(), flags) != 0) throw nb::python_error();
  std::shared_ptr<Py_buffer> lent(taken.release(), [](Py_buffer* given) {
    PyBuffer_Release(given);
    delete given;
  });
  auto* begin = static_cast<std::byte*>(lent->buf);
  const auto size_bytes = static_cast<std::size_t>(lent->len);
  return std::make_shared<SharedMemory>(Pages(), begin, size_bytes, std::move(lent));
}

std::shared_ptr<SharedMemory> borrow_any(nb::handle object, std::size_t size_bytes) {
  if (!nb::isinstance<nb::tuple>(object)) return borrow(object, false);
  const auto memory = nb::cast<nb::tuple>(object);
  const auto address = nb::cast<std::uintptr_t>(memory[0]);
  nb::object owner = memory[1];
  std::shared_ptr<Py_buffer> lent(std::make_unique<Py_buffer>().release(),
                                  [owner](Py_buffer* given) { delete given; });
  auto* begin = reinterpret_cast<std::byte*>(address);
  return std::make_shared<SharedMemory>(Pages(), begin, size_bytes, std::move(lent));
}

// mremap() of nothing maps the pages of a shared mapping once more.
std::shared_ptr<SharedMemory> view_of_pool(void* mapped, std::size_t size_bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t skipped = reinterpret_cast<std::uintptr_t>(mapped) % page;
  auto* first = static_cast<std::byte*>(mapped) - skipped;
  Pages pages = reserve_like(first, whole_pages(skipped + size_bytes));
  if (!remap(first, 0, pages.size_bytes(), pages.begin())) {
    refuse("a view of the pool", size_bytes);
  }
  std::byte* begin = pages.begin() + skipped;
  return std::make_shared<SharedMemory>(std::move(pages), begin, size_bytes);
}

Pages copy_of(const SharedMemory& view) {
  Pages copy = allocate_pages(view.pages.size_bytes());
  std::memcpy(copy.begin() + (view.begin - view.pages.begin()), view.begin, view.size_bytes);
  return copy;
}

void detach(SharedMemory& view, Pages copy) {
  if (!remap(copy.begin(), copy.size_bytes(), copy.size_bytes(), view.pages.begin())) {
    refuse("the copy of a view", view.size_bytes);
  }
  copy.release();
}

void bind_memory(nb::module_& api) {
  nb::class_<Memory>(api, "Memory", nb::type_slots(memory_slots),
                     "Memory of an array; numpy takes it through the buffer protocol.");
}

}  // namespace perdure::python
