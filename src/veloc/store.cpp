// SPDX-License-Identifier: BSD-3-Clause
#include "veloc/store.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/files.hpp"
#include "veloc/failure.hpp"

namespace perdure_veloc {
namespace {

constexpr const char* stream_name = "stream";
constexpr std::uint64_t stream_unit = std::uint64_t{4} << 10U;
constexpr std::uint64_t name_bytes_max = 4096;

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

perdure::Options pool_options(const Config& config, const std::string& name) {
  perdure::Options options;
  options.allow_older = true;  // a program asks which version there is
  options.job = name;
  options.keep = config.scratch_versions;
  options.levels = config.levels();
  return options;
}

}  // namespace

Store::Store(const Ranks& ranks, const Config& config, const std::string& name)
    : ranks_(ranks), path_(config.scratch + "/" + name + ranks.suffix()) {
  open_pool(ranks, config, name + ranks.suffix());
  layout_.checksums = config.checksums ? 1 : 0;
  open_stream();
  pool_->scalar("veloc", layout_);
  pool_->scalar("iteration", shown_);
  head_ = pool_->restart();
  check_layout();
  settle_labels(head_);
  read_table();
}

// The number of versions that a pool keeps is fixed when it is made.
void Store::open_pool(const Ranks& ranks, const Config& config, const std::string& name) {
  perdure::Options options = pool_options(config, name);
  (void)perdure::Directory::make(config.scratch);  // if it can't be, so can't the pool in it
  try {
    pool_.emplace(ranks.open(path_, options));
    return;
  } catch (const perdure::Error& error) {
    if (error.code() != PERDURE_E_SHAPE) throw;
  }
  options.keep = 0;
  pool_.emplace(ranks.open(path_, options));
  if (ranks.rank() == 0) {
    std::fprintf(stderr, "perdure veloc: %s was made with another scratch_versions, and keeps it\n",
                 path_.c_str());
  }
}

// With the checksums that the checkpoints began with.
void Store::open_stream() {
  for (const perdure_array_info& held : pool_->arrays()) {
    if (std::string_view(held.name) == stream_name) layout_.checksums = held.checksums ? 1 : 0;
    if (std::string_view(held.name) != stream_name) continue;
    stream_ = pool_->array<std::byte>(stream_name, perdure::Mode::twin,
                                      {.checksums = held.checksums != 0});
    return;
  }
  stream_ = pool_->array<std::byte>(stream_name, {0}, perdure::Mode::twin,
                                    {.checksums = layout_.checksums != 0});
}

// It is read from a medium: what it says is checked before it is used.
void Store::check_layout() const {
  if (head_ == 0) return;
  if (layout_.format > format_newest) {
    throw Failure(path_ + " was written by a newer Perdure (format " +
                  std::to_string(layout_.format) + "); use that one");
  }
  const std::uint64_t bytes = stream_->size();
  const bool fits = layout_.format == format_newest && layout_.labels >= 1 &&
                    layout_.labels <= labels_max && layout_.table_at <= bytes &&
                    layout_.table_bytes <= bytes - layout_.table_at;
  if (!fits) throw Failure(path_ + " holds no checkpoints of the VELOC interface");
}

// The newest label in the scalar is that of the version that it belongs to.
void Store::settle_labels(std::uint64_t version) {
  if (version == 0) return;
  LabelFormat& own = layout_.label[layout_.labels - 1];
  own.version = version;
  for (std::uint64_t i = 0; i < layout_.labels; ++i) {
    const LabelFormat& read = layout_.label[i];
    const auto same = [&](const LabelFormat& known) { return known.version == read.version; };
    if (std::ranges::none_of(labels_, same)) labels_.push_back(read);
  }
}

std::optional<int> Store::newest_below(int limit) const {
  const auto kept = pool_->versions();
  std::optional<int> newest;
  for (const LabelFormat& known : labels_) {
    const bool there = std::ranges::any_of(
        kept, [&](const perdure_version_info& held) { return held.version == known.version; });
    const int label = static_cast<int>(known.label);
    if (there && (limit <= 0 || label < limit) && label > newest.value_or(-1)) newest = label;
  }
  return newest;
}

void Store::go_to(int label) {
  const auto kept = pool_->versions();
  std::uint64_t version = 0;
  for (const LabelFormat& known : labels_) {
    if (known.label != label) continue;
    for (const perdure_version_info& held : kept) {
      if (held.version == known.version) version = std::max(version, held.version);
    }
  }
  if (version == 0) {
    throw Failure(path_ + " has no version " + std::to_string(label) +
                  "; VELOC_Restart_test finds those that there are");
  }
  if (version == head_ && !ranks_.any(resized_)) return;
  pool_->restore(version);
  resized_ = false;
  head_ = version;
  check_layout();
  settle_labels(version);
  read_table();
}

void Store::read_table() {
  regions_.clear();
  if (head_ == 0) return;
  std::vector<std::byte> bytes(layout_.table_bytes);
  copy_out(layout_.table_at, bytes.data(), bytes.size());
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < layout_.regions; ++i) {
    RegionFormat format{};
    bool fits = bytes.size() - at >= sizeof format;
    if (fits) std::memcpy(&format, bytes.data() + at, sizeof format);
    at += sizeof format;
    fits = fits && format.name_bytes <= name_bytes_max && format.name_bytes <= bytes.size() - at &&
           format.at <= layout_.table_at && format.bytes <= layout_.table_at - format.at;
    if (!fits) throw Failure(path_ + ": the table of regions is damaged");
    const auto* const name = reinterpret_cast<const char*>(bytes.data() + at);
    regions_.push_back({static_cast<int>(format.id), std::string(name, format.name_bytes),
                        format.bytes, format.at});
    at += format.name_bytes;
  }
}

std::vector<std::byte> Store::table() const {
  std::vector<std::byte> bytes;
  const auto add = [&bytes](const void* from, std::size_t count) {
    const auto* const first = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), first, first + count);
  };
  for (const Region& region : written_) {
    const RegionFormat format{region.id, region.bytes, region.at, region.file.size()};
    add(&format, sizeof format);
    add(region.file.data(), region.file.size());
  }
  return bytes;
}

void Store::begin(const std::vector<std::uint64_t>& region_bytes) {
  written_.clear();
  end_ = 0;
  reserve(region_bytes);
}

void Store::reserve(const std::vector<std::uint64_t>& region_bytes) {
  std::uint64_t needed = end_ + written_.size() * sizeof(RegionFormat);
  for (const Region& region : written_) needed += region.file.size();
  for (const std::uint64_t bytes : region_bytes) {
    needed += rounded(bytes, region_alignment) + sizeof(RegionFormat) + name_bytes_max;
  }
  if (needed > stream_->size()) resize(needed);
}

void Store::resize(std::uint64_t bytes) {
  const std::uint64_t whole = rounded(bytes, stream_unit);
  if (whole == stream_->size()) return;
  stream_->resize({whole});
  resized_ = true;
}

void Store::write(Region region, const void* memory) {
  if (rounded(region.bytes, region_alignment) > stream_->size() - end_) {
    throw Failure("region " + std::to_string(region.id) + " of " + std::to_string(region.bytes) +
                  " bytes has no room: protect regions before VELOC_Checkpoint_begin");
  }
  region.at = end_;
  append(memory, region.bytes);
  static constexpr std::byte padding[region_alignment] = {};
  append(padding, rounded(end_, region_alignment) - end_);
  written_.push_back(std::move(region));
}

void Store::append(const void* bytes, std::uint64_t count) {
  if (count > stream_->size() - end_) {
    throw Failure(path_ + ": a checkpoint is larger than what it asked for");
  }
  if (count != 0) stream_->write(end_, {static_cast<const std::byte*>(bytes), count});
  end_ += count;
}

void Store::copy_out(std::uint64_t at, std::byte* to, std::uint64_t count) const {
  if (count != 0) std::memcpy(to, stream_->consistent().data() + at, count);
}

// The versions that the next one is made from, as far as the pool keeps them, and `label`.
LayoutFormat Store::with_label(int label) const {
  LayoutFormat next = layout_;
  next.format = format_newest;
  next.labels = 0;
  const auto kept = pool_->versions();
  for (const LabelFormat& known : labels_) {
    const bool there = std::ranges::any_of(kept, [&](const perdure_version_info& held) {
      return held.version == known.version && held.version <= head_;
    });
    if (there && known.label != label && next.labels < labels_max - 1) {
      next.label[next.labels++] = known;
    }
  }
  next.label[next.labels++] = {0, label};
  return next;
}

void Store::commit(int label) {
  const std::vector<std::byte> table_bytes = table();
  LayoutFormat next = with_label(label);
  next.table_at = end_;
  next.table_bytes = table_bytes.size();
  next.regions = written_.size();
  append(table_bytes.data(), table_bytes.size());
  resize(end_);  // what was asked for may have been more
  const LayoutFormat before = std::exchange(layout_, next);
  shown_ = label;
  try {
    head_ = pool_->commit();
    resized_ = false;
  } catch (const perdure::Error&) {
    layout_ = before;
    throw;
  }
  labels_.clear();
  settle_labels(head_);
  regions_ = written_;
}

}  // namespace perdure_veloc
