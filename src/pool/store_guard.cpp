// SPDX-License-Identifier: BSD-3-Clause
#include "pool/store_guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string_view>

#include "base/environment.hpp"
#include "pool/array_entry.hpp"
#include "pool/fault_handler.hpp"

namespace perdure {

struct GuardedBytes {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::uintptr_t end = 0;
  std::uintptr_t first = 0;  // the array's first byte
  std::byte* pages = nullptr;
  std::array<char, 320> name{};
  std::atomic<GuardedBytes*> next{nullptr};
};

namespace {

std::atomic<GuardedBytes*> ranges{nullptr};  // they are used again, and never freed
std::mutex ranges_mutex;                     // for claiming and releasing

// Text for a signal handler, which may neither allocate nor print.
class Sentence {
 public:
  void add(std::string_view text) {
    const std::size_t count = std::min(text.size(), text_.size() - bytes_);
    std::memcpy(text_.data() + bytes_, text.data(), count);
    bytes_ += count;
  }
  void add(std::uint64_t number) {
    std::array<char, 20> digits{};
    std::size_t at = digits.size();
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    add({digits.data() + at, digits.size() - at});
  }
  void print() const {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text_.data(), bytes_);
  }

 private:
  std::array<char, 1024> text_{};
  std::size_t bytes_ = 0;
};

// A judge of faults.
bool is_mistaken_store(std::uintptr_t address) {
  const GuardedBytes* range = ranges.load(std::memory_order_acquire);
  for (; range != nullptr; range = range->next.load(std::memory_order_acquire)) {
    const std::uintptr_t begin = range->begin.load(std::memory_order_acquire);
    if (begin != 0 && address >= begin && address < range->end) break;
  }
  if (range == nullptr) return false;
  Sentence sentence;
  sentence.add("perdure: PERDURE_CHECK: a store to byte ");
  sentence.add(address >= range->first ? address - range->first : 0);
  sentence.add(" of array ");
  sentence.add(range->name.data());
  sentence.add(
      " was stopped: it is to a copy that a version holds, or that a commit saves now. Its pointer "
      "or slice is most likely older than the last commit: take the working copy anew after each "
      "commit and restore, and store to it only when the commit has ended\n");
  sentence.print();
  return true;
}

GuardedBytes& free_range() {
  GuardedBytes* range = ranges.load();
  while (range != nullptr && range->begin.load() != 0) range = range->next.load();
  if (range != nullptr) return *range;
  static std::deque<GuardedBytes> made;
  GuardedBytes& added = made.emplace_back();
  added.next.store(ranges.load());
  ranges.store(&added, std::memory_order_release);
  return added;
}

}  // namespace

Result<bool> checks_stores() {
  const std::string text = environment("PERDURE_CHECK");
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  return Status(Code::invalid_argument, "PERDURE_CHECK='", text, "' is not 0 or 1");
}

Result<std::unique_ptr<StoreGuard>> StoreGuard::create(std::byte* begin, std::size_t size_bytes,
                                                       const std::byte* first,
                                                       const std::string& array) {
  judge_faults(is_mistaken_store);
  const std::lock_guard<std::mutex> lock(ranges_mutex);
  GuardedBytes& range = free_range();
  const std::string name = quoted(array);
  range.name.fill('\0');
  std::memcpy(range.name.data(), name.data(), std::min(name.size(), range.name.size() - 1));
  range.first = reinterpret_cast<std::uintptr_t>(first);
  range.pages = begin;
  range.end = reinterpret_cast<std::uintptr_t>(begin) + size_bytes;
  range.begin.store(reinterpret_cast<std::uintptr_t>(begin), std::memory_order_release);
  std::unique_ptr<StoreGuard> guard(new StoreGuard(range));
  PERDURE_TRY(guard->allow(false));
  return guard;
}

StoreGuard::~StoreGuard() {
  const std::lock_guard<std::mutex> lock(ranges_mutex);
  range_.begin.store(0, std::memory_order_release);
}

Status StoreGuard::allow(bool stores) {
  if (stores == open_) return Status::success();
  PERDURE_TRY(protect(stores ? PROT_READ | PROT_WRITE : PROT_READ));
  open_ = stores;
  return Status::success();
}

Status StoreGuard::protect(int protection) {
  if (::mprotect(range_.pages, range_.end - range_.begin.load(), protection) == 0) {
    return Status::success();
  }
  return errno_status("mprotect of an array (PERDURE_CHECK)", errno);
}

}  // namespace perdure
