// SPDX-License-Identifier: BSD-3-Clause
//
// Copies by the engine of a device: in pieces, in an order that is drawn, with pauses. What reads
// or stores to the same bytes in the meantime sees some of both.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "address.hpp"
#include "driver.hpp"

namespace fake {
namespace {

// The process's own memory as the kernel sees it, whatever may be done there by the processor.
int own_memory() {
  static const int file = ::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  return file;
}

struct Spot {
  std::byte* at;  // nullptr: private memory of the program, by its address
  std::uint64_t address;
  std::size_t follow;
};

Spot spot_of(Place place) {
  const Lock lock(driver().lock);
  const Range* const range = driver().ranges.find(place);
  if (range == nullptr) return {nullptr, place, 0};
  Spot spot{nullptr, place, 0};
  spot.at = Ranges::look(*range, place, &spot.follow);
  return spot;
}

bool move_bytes(const Spot& to, const Spot& from, std::size_t size_bytes) {
  if (to.at != nullptr && from.at != nullptr) {
    std::memmove(to.at, from.at, size_bytes);
    return true;
  }
  std::vector<std::byte> between(size_bytes);
  const auto as_sent = static_cast<ssize_t>(size_bytes);
  if (from.at != nullptr) {
    std::memcpy(between.data(), from.at, size_bytes);
  } else if (::pread(own_memory(), between.data(), size_bytes, static_cast<off_t>(from.address)) !=
             as_sent) {
    return false;
  }
  if (to.at != nullptr) {
    std::memcpy(to.at, between.data(), size_bytes);
    return true;
  }
  return ::pwrite(own_memory(), between.data(), size_bytes, static_cast<off_t>(to.address)) ==
         as_sent;
}

// False if there is no such memory any more. Pages of the program's that went while they were
// registered are still the driver's: nobody sees what is stored to them.
bool copy_piece(Place to, Place from, std::size_t size_bytes) {
  while (size_bytes != 0) {
    const Spot there = spot_of(to);
    const Spot here = spot_of(from);
    const std::size_t part = std::min({size_bytes, there.follow, here.follow});
    if (part == 0) return false;
    move_bytes(there, here, part);
    to += part;
    from += part;
    size_bytes -= part;
  }
  return true;
}

bool is_the_one_to_kill_in() {
  const Lock lock(driver().lock);
  return ++driver().copies == settings().kill_copy;
}

void copy_all(CudaContext* context, Place to, Place from, std::size_t size_bytes) {
  constexpr std::size_t pieces = 5;
  std::array<std::size_t, pieces + 1> cuts{0};
  for (std::size_t i = 1; i < pieces; i++) cuts[i] = settings().draw() % (size_bytes + 1);
  cuts[pieces] = size_bytes;
  std::sort(cuts.begin(), cuts.end());
  std::array<std::size_t, pieces> order{0, 1, 2, 3, 4};
  std::shuffle(order.begin(), order.end(), std::mt19937_64(settings().draw()));
  const bool dies = is_the_one_to_kill_in();
  for (std::size_t i = 0; i < pieces; i++) {
    if (dies && i == pieces / 2) ::kill(::getpid(), SIGKILL);
    const std::size_t first = cuts[order[i]];
    if (!copy_piece(to + first, from + first, cuts[order[i] + 1] - first)) {
      const Lock lock(driver().lock);
      return break_context(*context, CUDA_ILLEGAL_ADDRESS);
    }
    if (i + 1 < pieces) settings().delay();
  }
}

// Whether the bytes are in one range, or in none at all; else no copy may have them.
bool is_in_one(Place at, std::size_t size_bytes, const Range** range) {
  *range = driver().ranges.find(at);
  if (*range != nullptr) return at - (*range)->begin + size_bytes <= (*range)->size_bytes;
  const Range* const last = driver().ranges.find(at + size_bytes - 1);
  return last == nullptr;
}

// Bytes of the program that are not registered: read at once, so the program may use them again.
struct Staged {
  std::vector<std::byte> bytes;
};

int submit_from_staged(CudaStream& stream, Place to, const std::shared_ptr<Staged>& staged) {
  return submit(stream, {[context = stream.context, to, staged] {
                           std::size_t done = 0;
                           while (done < staged->bytes.size()) {
                             const Spot there = spot_of(to + done);
                             const Spot here{staged->bytes.data() + done, 0, 0};
                             const std::size_t part =
                                 std::min(there.follow, staged->bytes.size() - done);
                             if (part == 0) {
                               const Lock lock(driver().lock);
                               return break_context(*context, CUDA_ILLEGAL_ADDRESS);
                             }
                             move_bytes(there, here, part);
                             done += part;
                             settings().delay();
                           }
                         },
                         nullptr});
}

// To memory of the program that is not registered: the driver's thread may store there, as the
// caller waits.
void copy_to_program(CudaContext* context, Place to, Place from, std::size_t size_bytes) {
  std::size_t done = 0;
  while (done < size_bytes) {
    const Spot here = spot_of(from + done);
    const std::size_t part = std::min(here.follow, size_bytes - done);
    if (part == 0) {
      const Lock lock(driver().lock);
      return break_context(*context, CUDA_ILLEGAL_ADDRESS);
    }
    if (here.at != nullptr) {
      std::memcpy(at_address(to + done), here.at, part);
    } else {
      move_bytes({nullptr, to + done, part}, here, part);
    }
    done += part;
  }
}

}  // namespace

int submit_copy(Lock& lock, CudaStreamHandle handle, Place to, Place from, std::size_t size_bytes,
                bool wait) {
  CudaStream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_INVALID_HANDLE;
  if (size_bytes == 0) return CUDA_OK;
  const Range* to_range = nullptr;
  const Range* from_range = nullptr;
  if (!is_in_one(to, size_bytes, &to_range) || !is_in_one(from, size_bytes, &from_range)) {
    return CUDA_INVALID_VALUE;
  }
  if (to_range != nullptr && !to_range->may_store) return CUDA_INVALID_VALUE;
  if (wait) {
    const int code = unsafe_while_capturing();
    if (code != CUDA_OK) return code;
  }
  int code = CUDA_OK;
  if (from_range == nullptr) {
    if (to_range == nullptr) return CUDA_INVALID_VALUE;
    auto staged = std::make_shared<Staged>();
    staged->bytes.resize(size_bytes);
    std::memcpy(staged->bytes.data(), at_address(from), size_bytes);
    code = submit_from_staged(*stream, to, staged);
  } else if (to_range == nullptr) {
    code = submit(*stream, {[context = stream->context, to, from, size_bytes] {
                              copy_to_program(context, to, from, size_bytes);
                            },
                            nullptr});
    wait = true;
  } else {
    code = submit(*stream, {[context = stream->context, to, from, size_bytes] {
                              copy_all(context, to, from, size_bytes);
                            },
                            nullptr});
  }
  if (code != CUDA_OK || !wait || stream->capture) return code;
  return wait_for(lock, *stream);
}

int submit_fill(Lock& lock, CudaStreamHandle handle, Place to, unsigned char byte,
                std::size_t size_bytes, bool wait) {
  CudaStream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_INVALID_HANDLE;
  if (size_bytes == 0) return CUDA_OK;
  const Range* range = nullptr;
  if (!is_in_one(to, size_bytes, &range) || range == nullptr || !range->may_store) {
    return CUDA_INVALID_VALUE;
  }
  auto staged = std::make_shared<Staged>();
  staged->bytes.assign(size_bytes, static_cast<std::byte>(byte));
  const int code = submit_from_staged(*stream, to, staged);
  if (code != CUDA_OK || !wait || stream->capture) return code;
  return wait_for(lock, *stream);
}

}  // namespace fake
