// SPDX-License-Identifier: BSD-3-Clause
#include "device/host_ring.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <string>

namespace perdure {

Result<PinnedMemory> PinnedMemory::make(Accelerator& accelerator, std::uint64_t bytes) {
  PinnedMemory made;
  made.bytes_ = std::max<std::uint64_t>(bytes, 1);
  void* const at = ::mmap(nullptr, made.bytes_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) {
    return errno_status("allocating " + std::to_string(made.bytes_) +
                            " bytes through which memory of the GPU is saved",
                        errno);
  }
  made.at_ = static_cast<std::byte*>(at);
  // After a fork, a store of ours would go to another page than the one that the driver has pinned.
  if (::madvise(at, made.bytes_, MADV_DONTFORK) != 0) {
    return errno_status("keeping the memory through which a GPU is saved from children", errno);
  }
  if (accelerator.register_host(made.at_, made.bytes_).ok()) made.by_ = &accelerator;
  return made;
}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  std::swap(by_, other.by_);
  std::swap(at_, other.at_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (at_ == nullptr) return;
  if (by_ != nullptr) by_->unregister_host(at_);
  ::munmap(at_, bytes_);
}

Result<std::unique_ptr<HostRing>> HostRing::make(Accelerator& accelerator,
                                                 std::uint64_t unit_bytes) {
  constexpr std::uint64_t usual = std::uint64_t{8} << 20U;
  const std::uint64_t slot_bytes = std::max<std::uint64_t>(usual / unit_bytes, 1) * unit_bytes;
  std::unique_ptr<HostRing> ring(new HostRing(accelerator, slot_bytes));
  for (AcceleratorEvent& event : ring->passed_) {
    PERDURE_TRY_ASSIGN(event, AcceleratorEvent::make(accelerator));
  }
  PERDURE_TRY_ASSIGN(ring->slots_, PinnedMemory::make(accelerator, 2 * slot_bytes));
  return ring;
}

}  // namespace perdure
