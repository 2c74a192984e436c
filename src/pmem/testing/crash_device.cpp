// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/testing/crash_device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

namespace perdure {
namespace {

constexpr std::size_t word_bytes = 8;
const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

std::uint64_t load_word(const std::byte* bytes, std::uint64_t word) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes + word * word_bytes, word_bytes);
  return value;
}

void put_word(std::vector<std::byte>& bytes, std::uint64_t word, std::uint64_t value) {
  std::memcpy(bytes.data() + word * word_bytes, &value, word_bytes);
}

// Adds one to a number whose digit i runs from 0 to radix[i] - 1; false when it wraps to zero.
template <typename Radix>
bool next_combination(std::vector<std::uint32_t>& digits, const Radix& radix) {
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (++digits[i] < radix(i)) return true;
    digits[i] = 0;
  }
  return false;
}

}  // namespace

const char* atomicity_name(AtomicityModel model) {
  switch (model) {
    case AtomicityModel::prefix:
      return "prefix";
    case AtomicityModel::words:
      return "words";
    case AtomicityModel::lines:
      return "lines";
  }
  return "?";
}

std::unique_ptr<CrashDevice> CrashDevice::unrecorded(std::uint64_t size_bytes_max,
                                                     std::size_t line_bytes) {
  return std::unique_ptr<CrashDevice>(new CrashDevice(size_bytes_max, line_bytes, false, false));
}

CrashDevice::CrashDevice(std::uint64_t size_bytes_max, std::size_t line_bytes, bool as_file,
                         bool records)
    : line_bytes_(line_bytes),
      size_bytes_max_(size_bytes_max),
      own_(as_file ? 0 : size_bytes_max + 2 * page_bytes),
      records_(records),
      shadow_(records ? size_bytes_max : 0),
      durable_(records ? size_bytes_max : 0),
      lines_(records ? (size_bytes_max + line_bytes - 1) / line_bytes : 0) {
  PERDURE_ASSERT(line_bytes % word_bytes == 0 && size_bytes_max % line_bytes == 0);
  if (!as_file) {
    // As a mapping does, it shares no page with other memory: a driver that pins it pins pages.
    volatile_ = own_.data() + (-reinterpret_cast<std::uintptr_t>(own_.data())) % page_bytes;
    return;
  }
  file_ = FileHandle(::memfd_create("crash device", MFD_CLOEXEC));
  PERDURE_ASSERT(::ftruncate(file_.fd(), static_cast<off_t>(size_bytes_max)) == 0);
  void* mapped = ::mmap(nullptr, size_bytes_max, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), 0);
  PERDURE_ASSERT(mapped != MAP_FAILED);
  volatile_ = static_cast<std::byte*>(mapped);
}

CrashDevice::~CrashDevice() {
  if (own_.empty()) ::munmap(volatile_, size_bytes_max_);
}

DeviceFile CrashDevice::file() const {
  if (file_.fd() < 0) return {};
  return {"/proc/self/fd/" + std::to_string(file_.fd()), false};
}

void CrashDevice::load(std::span<const std::byte> image) {
  PERDURE_ASSERT(image.size() <= size_bytes_max_);
  size_bytes_ = image.size();
  for (std::byte* bytes : {volatile_, shadow_.data(), durable_.data()}) {
    std::copy(image.begin(), image.end(), bytes);
    std::fill(bytes + image.size(), bytes + size_bytes_max_, std::byte{0});
    if (!records_) return;
  }
  for (Line& line : lines_) {
    line.pending.clear();
    line.flushed = 0;
  }
  unfenced_.clear();
}

DeviceDescription CrashDevice::describe() const {
  return {"crash device", PersistenceClass::power_failure, line_bytes_};
}

Status CrashDevice::resize(std::uint64_t size_bytes) {
  if (size_bytes > size_bytes_max_) return {Code::no_space, "the crash device is full"};
  size_bytes_ = std::max(size_bytes_, size_bytes);
  return Status::success();
}

void CrashDevice::store(std::uint64_t offset, const void* source, std::size_t count) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  PERDURE_ASSERT(offset + count <= size_bytes_);
  note_direct_stores_before(offset, count);
  std::copy_n(static_cast<const std::byte*>(source), count, volatile_ + offset);
  stored_bytes_ += count;
  if (!records_) return;
  const std::uint64_t end = (offset + count + word_bytes - 1) / word_bytes;
  for (std::uint64_t word = offset / word_bytes; word < end; ++word) log_word(word);
}

void CrashDevice::store_word(std::uint64_t offset, std::uint64_t word) {
  PERDURE_ASSERT(offset % word_bytes == 0);
  store(offset, &word, sizeof word);
}

void CrashDevice::copy(std::uint64_t offset, const void* source, std::size_t count) {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  store(offset, source, count);
  stored_bytes_ -= count;
  copied_bytes_ += count;
  flush(offset, count);
}

void CrashDevice::flush(std::uint64_t offset, std::size_t count) {
  if (count == 0) return;
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  note_direct_stores_before(offset, count);
  flush_calls_ += 1;
  if (!records_) return;
  if (forgotten_flushes != 0 && flush_calls_ % forgotten_flushes == 0) return;
  const std::uint64_t last = (offset + count - 1) / line_bytes_;
  for (std::uint64_t index = offset / line_bytes_; index <= last; ++index) {
    lines_[index].flushed = lines_[index].pending.size();
    lines_[index].flusher = std::this_thread::get_id();
    unfenced_.push_back(index);
    flushed_bytes_ += line_bytes_;
  }
}

Status CrashDevice::fence() {
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  if (on_fence) {
    note_direct_stores(0, size_bytes_);
    on_fence(*this);
  }
  const std::uint64_t call = ++fence_calls_;
  const bool fails =
      call >= failing_fence && call - failing_fence < failing_fences && failing_fence != 0;
  std::erase_if(unfenced_, [&](std::uint64_t index) {
    Line& line = lines_[index];
    if (line.flusher != std::this_thread::get_id()) return false;
    const auto end = line.pending.begin() + static_cast<std::ptrdiff_t>(fails ? 0 : line.flushed);
    std::for_each(line.pending.begin(), end,
                  [&](const WordStore& store) { put_word(durable_, store.word, store.value); });
    line.pending.erase(line.pending.begin(), end);
    line.flushed = 0;
    return true;
  });
  return fails ? Status(Code::io_error, "the fence failed") : Status::success();
}

void CrashDevice::log_word(std::uint64_t word) {
  const std::uint64_t value = load_word(volatile_, word);
  lines_[word * word_bytes / line_bytes_].pending.push_back({word, value});
  put_word(shadow_, word, value);
}

void CrashDevice::note_direct_stores(std::uint64_t begin, std::uint64_t end) {
  if (!records_ || std::memcmp(volatile_ + begin, shadow_.data() + begin, end - begin) == 0) return;
  for (std::uint64_t word = begin / word_bytes; word * word_bytes < end; ++word) {
    if (load_word(volatile_, word) != load_word(shadow_.data(), word)) log_word(word);
  }
}

void CrashDevice::note_direct_stores_before(std::uint64_t offset, std::size_t count) {
  if (on_fence) {
    note_direct_stores(0, size_bytes_);
    return;
  }
  const std::uint64_t begin = std::min(offset / line_bytes_ * line_bytes_, size_bytes_);
  const std::uint64_t end = (offset + count + line_bytes_ - 1) / line_bytes_ * line_bytes_;
  note_direct_stores(begin, std::min(end, size_bytes_));
}

std::vector<CrashDevice::Unit> CrashDevice::units(AtomicityModel model) {
  std::vector<Unit> result;
  for (const Line& line : lines_) {
    if (line.pending.empty()) continue;
    if (model == AtomicityModel::words) {
      std::map<std::uint64_t, Unit> words;
      for (const WordStore& store : line.pending) {
        auto& choices = words[store.word].choices;
        if (choices.empty()) choices.emplace_back();  // choice 0: none
        choices.push_back({store});
      }
      for (auto& [word, unit] : words) result.push_back(std::move(unit));
      continue;
    }
    Unit unit;
    unit.choices.emplace_back();
    for (std::size_t k = 1; k <= line.pending.size(); ++k) {
      if (model == AtomicityModel::lines && k < line.pending.size()) continue;
      unit.choices.emplace_back(line.pending.begin(),
                                line.pending.begin() + static_cast<std::ptrdiff_t>(k));
    }
    result.push_back(std::move(unit));
  }
  return result;
}

void CrashDevice::apply(const std::vector<Unit>& units, const std::vector<std::uint32_t>& chosen,
                        std::vector<std::byte>& image) const {
  std::copy_n(durable_.begin(), size_bytes_, image.begin());
  for (std::size_t i = 0; i < units.size(); ++i) {
    for (const WordStore& store : units[i].choices[chosen[i]]) {
      put_word(image, store.word, store.value);
    }
  }
}

ImageCount CrashDevice::for_each_image(AtomicityModel model, std::uint64_t bound,
                                       std::uint64_t seed, const ImageFunction& function) {
  PERDURE_ASSERT(records_);
  const std::lock_guard<std::recursive_mutex> lock(mutex_);
  note_direct_stores(0, size_bytes_);
  const std::vector<Unit> all = units(model);
  const auto radix = [&all](std::size_t i) {
    return static_cast<std::uint32_t>(all[i].choices.size());
  };
  std::vector<std::uint32_t> chosen(all.size(), 0);
  // The last word may reach beyond the end, as the last page of a mapping does.
  std::vector<std::byte> image((size_bytes_ + word_bytes - 1) / word_bytes * word_bytes);
  const auto yield = [&] {
    apply(all, chosen, image);
    function(std::span(image).first(static_cast<std::size_t>(size_bytes_)));
  };
  double combinations = 1;
  for (std::size_t i = 0; i < all.size(); ++i) combinations *= radix(i);
  ImageCount count;
  if (combinations <= static_cast<double>(bound)) {
    do {
      yield();
      ++count.images;
    } while (next_combination(chosen, radix));
    return count;
  }
  count.exhaustive = false;
  std::mt19937_64 random(seed);
  for (std::uint64_t sample = 0; sample < bound; ++sample, ++count.images) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      // None first, then all, then at random.
      chosen[i] = sample == 0   ? 0
                  : sample == 1 ? radix(i) - 1
                                : static_cast<std::uint32_t>(random() % radix(i));
    }
    yield();
  }
  return count;
}

}  // namespace perdure
