// SPDX-License-Identifier: BSD-3-Clause
#include "device/host_ring.hpp"

#include <cerrno>

namespace perdure {

Result<std::unique_ptr<HostRing>> HostRing::make(Accelerator& accelerator) {
  std::unique_ptr<HostRing> ring(new HostRing(accelerator));
  for (AcceleratorEvent& event : ring->filled_) {
    PERDURE_TRY_ASSIGN(event, AcceleratorEvent::make(accelerator));
  }
  void* const at = ::mmap(nullptr, 2 * slot_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) {
    return errno_status("allocating " + std::to_string(2 * slot_bytes) +
                            " bytes through which memory of the GPU is saved",
                        errno);
  }
  ring->slots_ = static_cast<std::byte*>(at);
  ring->registered_ = accelerator.register_host(ring->slots_, 2 * slot_bytes).ok();
  return ring;
}

HostRing::~HostRing() {
  if (slots_ == nullptr) return;
  // A transfer that was given up may still be storing here.
  for (const AcceleratorEvent& event : filled_) (void)accelerator_.wait(event.handle());
  if (registered_) accelerator_.unregister_host(slots_);
  ::munmap(slots_, 2 * slot_bytes);
}

}  // namespace perdure
