// SPDX-License-Identifier: BSD-3-Clause
#include "model_job.hpp"

#include <sys/mman.h>
#include <algorithm>

#include <cstdlib>
#include <cstring>

namespace perdure {
namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

Geometry geometry_of(const ModelShape& shape) {
  return {4096, 4096, 4096, shape.keep + 1};
}

std::uint64_t device_bytes(const ModelShape& shape) {
  const std::uint64_t slots = shape.keep + 1;
  // The pool begins what fills a huge page with one.
  const std::uint64_t unit = shape.bytes < huge_page_bytes ? page_bytes : huge_page_bytes;
  const std::uint64_t copy_bytes = align_up(shape.bytes, unit);
  return 2 * page_bytes + slots * page_bytes + (slots + 1) * copy_bytes + unit;
}

IpvOptions options_of(const ModelShape& shape) {
  IpvOptions options;
  options.lag = shape.lag;
  options.helper = shape.helper;
  options.guard = shape.guard;
  options.move_views = shape.move_views;
  options.verify = shape.verify;
  return options;
}

}  // namespace

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

ObjectsOnDevice::ObjectsOnDevice(std::unique_ptr<CrashDevice> on, const IpvOptions& options)
    : device(on.get()) {
  auto region = check_region(*on);
  PERDURE_ASSERT(region.ok());
  auto attached = Pool::attach(std::move(on), region.value(), group, {});
  PERDURE_ASSERT(attached.ok());
  pool = attached.take();
  auto opened = ObjectSet::open(*pool, options);
  PERDURE_ASSERT(opened.ok());
  set = opened.take();
}

std::unique_ptr<CrashDevice> model_device(const ModelShape& shape,
                                          std::span<const std::byte> image) {
  auto device = std::make_unique<CrashDevice>(device_bytes(shape), 64, true);
  if (!image.empty()) {
    device->load(image);
    return device;
  }
  auto region = format_region(*device, {{{1, 2}}, "test", 0, 1}, geometry_of(shape));
  PERDURE_ASSERT(region.ok() && format_slots(*device, region.value()).ok());
  return device;
}

ModelRecovery recover_model(const ModelShape& shape, std::span<const std::byte> image) {
  ModelRecovery recovery;
  auto device = CrashDevice::unrecorded(device_bytes(shape), 64);
  device->load(image);
  SoloGroup group;
  auto region = check_region(*device);
  if (!region.ok()) return {region.status(), 0, {}};
  auto pool = Pool::attach(std::move(device), region.value(), group, {});
  if (!pool.ok()) return {pool.status(), 0, {}};
  recovery.contents.bytes.resize(shape.bytes);
  Pool& opened = *pool.value();
  recovery.status = opened.bind_scalar("step", &recovery.contents.step, 8);
  auto array = opened.open_array("u", {ArrayType::byte, ArrayMode::twin, false, {shape.bytes}},
                                 ArrayOptions{});
  if (!array.ok()) return {array.status(), 0, {}};
  auto version = opened.restart();
  if (!version.ok()) return {version.status(), 0, {}};
  recovery.version = version.value();
  std::memcpy(recovery.contents.bytes.data(), array.value()->consistent(), shape.bytes);
  return recovery;
}

ModelJob::ModelJob(const ModelShape& shape, std::unique_ptr<CrashDevice> device)
    : shape_(shape),
      on_(std::move(device), options_of(shape)),
      mapped_bytes_(align_up(shape.misaligned + shape.bytes, page_bytes)) {
  void* mapped =
      ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  PERDURE_ASSERT(mapped != MAP_FAILED);
  mapped_ = static_cast<std::byte*>(mapped);
  address_ = mapped_ + shape.misaligned;
}

ModelJob::~ModelJob() {
  on_.set.reset();
  ::munmap(mapped_, mapped_bytes_);
}

Result<std::uint64_t> ModelJob::start(const ModelVersion& fresh) {
  now = fresh;
  std::memcpy(address_, fresh.bytes.data(), fresh.bytes.size());
  step_ = fresh.step;
  PERDURE_TRY(on_.pool->bind_scalar("step", &step_, sizeof step_));
  const bool whole_pages = shape_.bytes >= page_bytes && !shape_.shared_end;
  PERDURE_TRY(on_.set->add("u", address_, shape_.bytes, shape_.tier, whole_pages));
  auto version = on_.set->restart();
  if (!version.ok()) return version;
  std::memcpy(now.bytes.data(), address_, now.bytes.size());
  now.step = step_;
  return version;
}

void ModelJob::check(std::uint64_t offset, std::uint8_t found, const char* what) {
  ++loads;
  if (found == now.bytes[offset] || !wrong.empty()) return;
  wrong = std::string(what) + " of byte " + std::to_string(offset) + " gave " +
          std::to_string(found) + ", not " + std::to_string(now.bytes[offset]);
}

// As a loop would: each element is loaded, stored, and perhaps loaded again.
void ModelJob::overwrite(ByteRange row, ptrdiff_t load, Random& random) {
  const bool again = below(random, 2) == 0;
  for (std::uint64_t i = row.begin; i < row.end; ++i) {
    check(i, address()[static_cast<std::ptrdiff_t>(i) + load], "a load before the store");
    now.bytes[i] = static_cast<std::uint8_t>(random());
    address()[i] = now.bytes[i];
    if (again) {
      check(i, address()[i], "a load after the store");
    }
  }
}

void ModelJob::nest(const ModelBox& of, Random& random) {
  perdure_ipv_box box{};
  box.first = address_ + of.first;
  box.dimensions = of.counts.size();
  std::ranges::copy(of.counts, box.counts);
  std::ranges::copy(of.strides, box.strides);
  const perdure_ipv_range other{object().first() + of.other.begin, object().first() + of.other.end};
  box.others = &other;
  box.other_count = of.other.begin == of.other.end ? 0 : 1;
  const auto by = object().box_begin(box);
  if (by.how != PERDURE_IPV_NO_BOX) ++boxes;
  if (by.how == PERDURE_IPV_NO_BOX && !shape_.guard) object().plain();
  std::vector<std::size_t> at(of.counts.size(), 0);
  for (bool more = true; more;) {
    std::uint64_t begin = of.first;
    for (std::size_t d = 1; d < of.counts.size(); ++d) begin += at[d] * of.strides[d];
    overwrite({begin, begin + of.counts[0]}, by.load, random);
    std::size_t d = 1;
    for (; d < of.counts.size() && ++at[d] == of.counts[d]; ++d) at[d] = 0;
    more = d < of.counts.size();
  }
  if (by.how == PERDURE_IPV_NO_BOX) return;
  // The device takes the stores of rows for such that went past the cache, if box_end() says so.
  const bool past_cache = by.how == PERDURE_IPV_BOX_PAST_CACHE && below(random, 2) == 0;
  set().box_end(object(), box, past_cache);
}

void ModelJob::store(ByteRange range, bool hook, Random& random) {
  if (hook) object().plain();
  for (std::uint64_t i = range.begin; i < range.end; ++i) {
    now.bytes[i] = static_cast<std::uint8_t>(random());
    address()[i] = now.bytes[i];
  }
}

void ModelJob::compare(ByteRange range) {
  for (std::uint64_t i = range.begin; i < range.end; ++i) check(i, address()[i], "a load");
}

Result<std::uint64_t> ModelJob::persist() {
  step_ = ++now.step;
  return on_.set->persist();
}

}  // namespace perdure
