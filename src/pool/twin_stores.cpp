// SPDX-License-Identifier: BSD-3-Clause
#include "pool/twin_stores.hpp"

namespace perdure {

Result<Accelerator*> TwinStores::source(const ArraySurroundings& with, const std::byte* elements,
                                        std::uint64_t bytes) {
  if (with.accelerators == nullptr || with.accelerators->stream() == nullptr) return nullptr;
  PERDURE_TRY_ASSIGN(Accelerator* const found, with.accelerators->of(elements, bytes));
  if (found == nullptr) PERDURE_TRY(check_of_host(elements));
  return found;
}

void TwinStores::add(std::uint64_t first_byte, std::uint64_t count_bytes) {
  if (first_byte == streamed_.end) {
    streamed_.end += count_bytes;
  } else if (count_bytes > streamed_.end - streamed_.begin) {
    streamed_ = {first_byte, first_byte + count_bytes};
  }
}

Result<TwinStores::Source*> TwinStores::source_of(const ArraySurroundings& with,
                                                  Accelerator& accelerator,
                                                  const ArrayEntry& entry) {
  Source* found = nullptr;
  for (Source& each : sources_) {
    if (each.accelerator == &accelerator) found = &each;
  }
  if (found != nullptr && found->first_offset == entry.first_offset) return found;
  if (found == nullptr) {
    PERDURE_TRY_ASSIGN(auto done, AcceleratorEvent::make(accelerator));
    found = &sources_.emplace_back();
    found->accelerator = &accelerator;
    found->done = std::move(done);
  }
  const std::uint64_t bytes =
      entry.copy_offset(entry.copies - 1) + entry.size_bytes - entry.first_offset;
  std::byte* const begin = with.device.base() + entry.first_offset;
  found->first_offset = entry.first_offset;
  found->registered =
      with.device.takes_dma() && with.accelerators->registered().add(accelerator, begin, bytes);
  return found;
}

Status TwinStores::store(const ArraySurroundings& with, Source& source, std::uint64_t offset,
                         std::uint64_t bytes, const std::byte* elements) {
  Accelerator& accelerator = *source.accelerator;
  const ProgramStream* const stream = with.accelerators->stream();
  PERDURE_TRY(accelerator.follow(stream));
  if (!source.registered) {
    PERDURE_TRY_ASSIGN(HostRing* const ring,
                       with.accelerators->ring_of(accelerator, with.block_bytes));
    return ring->pass(address_of(elements), bytes,
                      [&](std::uint64_t begin, const std::byte* at, std::uint64_t count) {
                        with.device.copy(offset + begin, at, count);
                        return Status::success();
                      });
  }
  std::byte* const to = with.device.base() + offset;
  PERDURE_TRY(with.accelerators->registered().for_each_piece(
      to, bytes, [&](std::byte* at, std::uint64_t count) {
        return accelerator.copy_to_host(
            at, address_of(elements) + static_cast<std::uint64_t>(at - to), count);
      }));
  PERDURE_TRY(accelerator.record(source.done.handle()));
  source.under_way = true;
  return accelerator.hold(stream, source.done.handle());
}

Status TwinStores::transfer(const ArraySurroundings& with, Accelerator& accelerator,
                            const ArrayEntry& entry, std::uint32_t copy, std::uint64_t first_byte,
                            std::uint64_t bytes, const std::byte* elements) {
  PERDURE_TRY_ASSIGN(Source* const source, source_of(with, accelerator, entry));
  if (bytes == 0) return Status::success();
  Status stored = store(with, *source, entry.copy_offset(copy) + first_byte, bytes, elements);
  if (!stored.ok()) (void)accelerator.finish();  // pool.D5
  return stored;
}

Status TwinStores::settle() {
  Status settled;
  for (Source& each : sources_) {
    if (!std::exchange(each.under_way, false)) continue;
    Status arrived = each.accelerator->wait(each.done.handle());
    if (!arrived.ok()) (void)each.accelerator->finish();
    if (settled.ok()) settled = std::move(arrived);
  }
  return settled;
}

void TwinStores::clear() {
  (void)settle();
  streamed_ = {};
}

}  // namespace perdure
