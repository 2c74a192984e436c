// SPDX-License-Identifier: BSD-3-Clause
#include "pool/twin_stores.hpp"

#include <algorithm>
#include <utility>

namespace perdure {
namespace {

std::uint64_t length(const ByteRange& range) {
  return range.end - range.begin;
}

bool overlap(const ByteRange& one, const ByteRange& other) {
  return std::max(one.begin, other.begin) < std::min(one.end, other.end);
}

}  // namespace

Result<TwinStores::Elements> TwinStores::look_at(const ArraySurroundings& with,
                                                 const void* elements, std::uint64_t bytes) {
  Elements found{static_cast<const std::byte*>(elements), bytes, nullptr, MemoryKind::host};
  if (with.accelerators == nullptr || with.accelerators->stream() == nullptr) return found;
  PERDURE_TRY_ASSIGN(found.accelerator, with.accelerators->of(found.at, bytes, &found.kind));
  if (found.accelerator == nullptr) PERDURE_TRY(check_of_host(found.at));
  return found;
}

void TwinStores::add(const ByteRange& range) {
  if (range.begin == streamed_.end) {
    streamed_.end = range.end;
  } else if (length(range) > length(streamed_)) {
    streamed_ = range;
  }
}

// The larger part stays that is before it, or after it.
void TwinStores::take_out(const ByteRange& range) {
  if (!overlap(streamed_, range)) return;
  const ByteRange before{streamed_.begin, std::max(streamed_.begin, range.begin)};
  const ByteRange after{std::min(streamed_.end, range.end), streamed_.end};
  streamed_ = length(before) > length(after) ? before : after;
}

Result<TwinStores::Source*> TwinStores::source_of(const ArraySurroundings& with,
                                                  Accelerator& accelerator, const ArrayEntry& entry,
                                                  std::uint32_t copy) {
  Source* found = nullptr;
  for (Source& each : sources_) {
    if (each.accelerator == &accelerator) found = &each;
  }
  if (found == nullptr) {
    PERDURE_TRY_ASSIGN(auto done, AcceleratorEvent::make(accelerator));
    found = &sources_.emplace_back();
    found->accelerator = &accelerator;
    found->done = std::move(done);
  }
  std::byte* const at = with.device.base() + entry.copy_offset(copy);
  found->registers = found->registers && with.device.takes_dma() &&
                     with.accelerators->registered().add(accelerator, at, entry.size_bytes);
  return found;
}

// Through the host's memory.
Status TwinStores::pass(const ArraySurroundings& with, Source& source, std::uint64_t offset,
                        const Elements& elements) {
  Accelerator& accelerator = *source.accelerator;
  PERDURE_TRY(accelerator.follow(with.accelerators->stream()));
  PERDURE_TRY_ASSIGN(HostRing* const ring,
                     with.accelerators->ring_of(accelerator, with.block_bytes));
  unfenced_ = true;
  return ring->pass(address_of(elements.at), elements.bytes,
                    [&](std::uint64_t begin, const std::byte* at, std::uint64_t count) {
                      with.device.copy(offset + begin, at, count);
                      return Status::success();
                    });
}

// Straight there.
Status TwinStores::begin(const ArraySurroundings& with, Source& source, std::uint64_t offset,
                         const Elements& elements) {
  Accelerator& accelerator = *source.accelerator;
  const ProgramStream* const stream = with.accelerators->stream();
  PERDURE_TRY(accelerator.follow(stream));
  std::byte* const to = with.device.base() + offset;
  PERDURE_TRY(with.accelerators->registered().for_each_piece(
      to, elements.bytes, [&](std::byte* at, std::uint64_t count) {
        return accelerator.copy_to_host(
            at, address_of(elements.at) + static_cast<std::uint64_t>(at - to), count);
      }));
  PERDURE_TRY(accelerator.record(source.done.handle()));
  return accelerator.hold(stream, source.done.handle());
}

Status TwinStores::transfer(const ArraySurroundings& with, const ArrayEntry& entry,
                            std::uint32_t copy, std::uint64_t first_byte,
                            const Elements& elements) {
  Accelerator& accelerator = *elements.accelerator;
  const bool registers_only = elements.bytes == 0;
  PERDURE_TRY_ASSIGN(Source* const source,
                     source_of(with, accelerator, entry, registers_only ? entry.copy : copy));
  if (registers_only) return Status::success();
  const ByteRange range{first_byte, first_byte + elements.bytes};
  PERDURE_TRY(settle_others(range, source->registers ? source : nullptr));  // pool.D6
  const std::uint64_t offset = entry.copy_offset(copy) + first_byte;
  take_out(range);  // pool.D7
  if (source->registers && std::exchange(unfenced_, false)) PERDURE_TRY(with.device.fence());
  Status stored = source->registers ? begin(with, *source, offset, elements)
                                    : pass(with, *source, offset, elements);
  if (!stored.ok()) (void)accelerator.finish();  // pool.D5
  if (!stored.ok() || !source->registers) return stored;
  ByteRange& under_way = source->under_way;
  under_way = length(under_way) == 0 ? range
                                     : ByteRange{std::min(under_way.begin, range.begin),
                                                 std::max(under_way.end, range.end)};
  return elements.kind == MemoryKind::device ? Status::success() : settle(*source);  // pool.D6
}

Status TwinStores::store(const ArraySurroundings& with, const ArrayEntry& entry, std::uint32_t copy,
                         std::uint64_t first_byte, const Elements& elements) {
  const ByteRange range{first_byte, first_byte + elements.bytes};
  PERDURE_TRY(settle_others(range, nullptr));  // pool.D6
  with.device.copy(entry.copy_offset(copy) + first_byte, elements.at, elements.bytes);
  unfenced_ = true;
  add(range);
  return Status::success();
}

Status TwinStores::settle(Source& source) {
  source.under_way = {};
  Status arrived = source.accelerator->wait(source.done.handle());
  if (!arrived.ok()) (void)source.accelerator->finish();
  if (failed_.ok()) failed_ = arrived;
  return arrived;
}

// What others have under way to these bytes.
Status TwinStores::settle_others(const ByteRange& range, const Source* own) {
  for (Source& each : sources_) {
    if (&each != own && overlap(each.under_way, range)) PERDURE_TRY(settle(each));
  }
  return Status::success();
}

Status TwinStores::settle() {
  for (Source& each : sources_) {
    if (length(each.under_way) != 0) (void)settle(each);
  }
  return failed_;
}

void TwinStores::clear() {
  (void)settle();
  failed_ = {};
  streamed_ = {};
}

}  // namespace perdure
