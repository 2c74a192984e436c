// SPDX-License-Identifier: BSD-3-Clause
#include "growing_job.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace perdure {
namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t area_bytes = 12 * page_bytes;
constexpr std::uint64_t device_bytes = std::uint64_t{4} << 20;
constexpr std::uint64_t wall = 40;  // of each 512 bytes of a pair, which are never stored to

static_assert(GrowingJob::bytes_max + page_bytes <= area_bytes);

std::uint8_t random_byte(Random& random) {
  return static_cast<std::uint8_t>(random());
}

IpvOptions options_of(const GrowingShape& shape) {
  IpvOptions options;
  options.lag = shape.lag;
  options.helper = shape.helper;
  options.verify = shape.verify;
  return options;
}

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

std::uint64_t stored_bytes(const Pool& pool, const char* name, std::uint64_t otherwise) {
  const auto stored = pool.stored_extents(name, RankRule::none);
  return stored.ok() ? stored.value().front() : otherwise;
}

}  // namespace

std::unique_ptr<CrashDevice> growing_device(const GrowingShape& shape,
                                            std::span<const std::byte> image) {
  auto device = std::make_unique<CrashDevice>(device_bytes, 64, true);
  if (!image.empty()) {
    device->load(image);
    return device;
  }
  const Geometry geometry{4096, 4096, 4096, shape.keep + 1};
  auto region = format_region(*device, {{{1, 2}}, "test", 0, 1}, geometry);
  PERDURE_ASSERT(region.ok() && format_slots(*device, region.value()).ok());
  return device;
}

GrowingRecovery recover_growing(const GrowingShape& /*shape*/, std::span<const std::byte> image) {
  auto device = CrashDevice::unrecorded(device_bytes, 64);
  device->load(image);
  SoloGroup group;
  auto region = check_region(*device);
  if (!region.ok()) return {region.status(), 0, {}};
  auto attached = Pool::attach(std::move(device), region.value(), group, {});
  if (!attached.ok()) return {attached.status(), 0, {}};
  Pool& pool = *attached.value();
  GrowingRecovery found;
  std::uint64_t alive = 0;
  found.status = pool.bind_scalar("step", &found.contents.step, 8);
  if (found.status.ok()) found.status = pool.bind_scalar("p:alive", &alive, 8);
  std::vector<VersionedArray*> arrays;
  for (const char* name : {"u", "p"}) {
    auto array = pool.open_array(
        name, {ArrayType::byte, ArrayMode::twin, false, {stored_bytes(pool, name, 1)}},
        ArrayOptions{});
    if (!array.ok()) return {array.status(), 0, {}};
    arrays.push_back(array.value());
  }
  auto version = pool.restart();
  if (!version.ok()) return {version.status(), 0, {}};
  found.version = version.value();
  for (auto [array, bytes] :
       {std::pair(arrays[0], &found.contents.object), std::pair(arrays[1], &found.contents.pair)}) {
    const auto* const first = reinterpret_cast<const std::uint8_t*>(array->consistent());
    bytes->assign(first, first + array->size_bytes());
  }
  return found;
}

GrowingVersion random_growing(std::uint64_t object_bytes, std::uint64_t pair_bytes,
                              Random& random) {
  GrowingVersion fresh;
  fresh.object.assign(object_bytes, 0);
  fresh.pair.assign(pair_bytes, 0);
  for (auto* bytes : {&fresh.object, &fresh.pair}) {
    for (std::uint8_t& byte : *bytes) byte = random_byte(random);
  }
  return fresh;
}

GrowingJob::GrowingJob(const GrowingShape& shape, std::unique_ptr<CrashDevice> device)
    : shape_(shape), on_(std::move(device), options_of(shape)) {
  for (int area = 0; area < 6; ++area) {
    void* mapped =
        ::mmap(nullptr, area_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PERDURE_ASSERT(mapped != MAP_FAILED);
    areas_.push_back(static_cast<std::byte*>(mapped));
  }
}

GrowingJob::~GrowingJob() {
  on_.set.reset();
  for (std::byte* area : areas_) ::munmap(area, area_bytes);
}

Result<std::uint64_t> GrowingJob::start(const GrowingVersion& fresh) {
  now = fresh;
  now.object.resize(stored_bytes(*on_.pool, "u", fresh.object.size()));
  now.pair.resize(stored_bytes(*on_.pool, "p", fresh.pair.size()));
  pair_[0] = areas_[2];
  pair_[1] = areas_[3];
  std::ranges::copy(now.object, reinterpret_cast<std::uint8_t*>(object_memory()));
  std::ranges::copy(now.pair, array(0).begin());
  step_ = fresh.step;
  PERDURE_TRY(on_.pool->bind_scalar("step", &step_, sizeof step_));
  PERDURE_TRY(on_.set->add("u", object_memory(), now.object.size(), shape_.tier, true));
  PERDURE_TRY(on_.set->add_pair("p", pair_[0], pair_[1], now.pair.size()));
  auto version = on_.set->restart();
  if (!version.ok()) return version;
  alive_ = on_.set->alive_of("p").value() == pair_[0] ? 0 : 1;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(object_memory()), now.object.size(),
              now.object.begin());
  std::ranges::copy(array(alive_), now.pair.begin());
  now.step = step_;
  return version;
}

void GrowingJob::complain(const char* what, std::uint64_t at) {
  if (wrong.empty()) wrong = std::string(what) + " of byte " + std::to_string(at) + " was wrong";
}

void GrowingJob::store(ByteRange range, Random& random) {
  if (gone_) return;
  auto* const to = reinterpret_cast<volatile std::uint8_t*>(object_memory());
  for (std::uint64_t at = range.begin; at < range.end; ++at) {
    to[at] = now.object[at] = random_byte(random);
  }
}

void GrowingJob::end_object(Going how) {
  const std::uintptr_t first = number(object_memory());
  PERDURE_ASSERT(on_.set->list()
                     .end_within(first, first + std::max<std::uint64_t>(now.object.size(), 1), how)
                     .ok());
}

void GrowingJob::free_object() {
  end_object(Going::freed);
  std::memset(object_memory(), 0x99, now.object.size());  // somebody else's
  gone_ = true;
}

Status GrowingJob::resize(std::uint64_t bytes, Growth how, Random& random) {
  const bool stays = how == Growth::in_place || (how == Growth::after_realloc && random() % 2 == 0);
  if (how == Growth::after_free && !gone_) free_object();
  if (how == Growth::after_realloc && !gone_) end_object(Going::moved);
  const unsigned area = stays && !gone_ ? area_ : 1 - area_;
  const std::uint64_t before = now.object.size();
  auto* const to = reinterpret_cast<volatile std::uint8_t*>(areas_[area] + shape_.misaligned);
  std::vector<std::uint8_t> contents = now.object;
  contents.resize(bytes);
  for (std::uint64_t at = before; at < bytes; ++at) contents[at] = random_byte(random);
  const std::uint64_t moved = area == area_ ? std::min(before, bytes) : 0;
  // New bytes come before the call or after it.
  const bool late = area == area_ && random() % 2 == 0;
  if (!late)
    std::copy(contents.begin() + static_cast<std::ptrdiff_t>(moved), contents.end(), to + moved);
  PERDURE_TRY(on_.set->resize("u", {areas_[area] + shape_.misaligned, nullptr, bytes, true}));
  if (late)
    std::copy(contents.begin() + static_cast<std::ptrdiff_t>(moved), contents.end(), to + moved);
  if (area != area_) std::memset(object_memory(), 0x77, before);  // the program's, and no object's
  area_ = area;
  gone_ = false;
  now.object = std::move(contents);
  return Status::success();
}

Status GrowingJob::resize_pair(std::uint64_t bytes, Random& random) {
  const unsigned place = pair_[0] == areas_[2] ? 4 : 2;
  std::vector<std::uint8_t> contents = now.pair;
  contents.resize(bytes);
  for (std::uint64_t at = now.pair.size(); at < bytes; ++at) contents[at] = random_byte(random);
  std::copy_n(contents.begin(), bytes, reinterpret_cast<std::uint8_t*>(areas_[place]));
  std::memset(areas_[place + 1], 0x55, bytes);
  PERDURE_TRY(on_.set->resize("p", {areas_[place], areas_[place + 1], bytes, true}));
  std::memset(pair_[0], 0x77, now.pair.size());
  std::memset(pair_[1], 0x77, now.pair.size());
  pair_[0] = areas_[place];
  pair_[1] = areas_[place + 1];
  alive_ = 0;
  now.pair = std::move(contents);
  return Status::success();
}

void GrowingJob::iterate_pair() {
  std::vector<std::uint8_t> next = now.pair;
  const auto* const from = reinterpret_cast<const volatile std::uint8_t*>(pair_[alive_]);
  auto* const to = reinterpret_cast<volatile std::uint8_t*>(pair_[1 - alive_]);
  for (std::uint64_t at = 0; at < next.size(); ++at) {
    if (from[at] != now.pair[at]) complain("a load of the pair", at);
    if (at % 512 < wall) continue;
    next[at] = static_cast<std::uint8_t>(now.pair[at] * 5U + now.pair[at - 1] + now.step + 1);
    to[at] = next[at];
  }
  alive_ = 1 - alive_;
  now.pair = std::move(next);
}

Result<std::uint64_t> GrowingJob::persist() {
  step_ = ++now.step;
  auto durable = on_.set->persist();
  for (std::uint64_t at = 0; at < now.pair.size(); ++at) {
    if (array(alive_)[at] != now.pair[at]) complain("after a persistence point a load", at);
  }
  return durable;
}

}  // namespace perdure
