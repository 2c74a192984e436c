// SPDX-License-Identifier: BSD-3-Clause
#include "base/guests.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/files.hpp"

namespace perdure {
namespace {

struct Lent {
  std::uintptr_t low;
  std::uintptr_t high;
};

// More ranges than these are kept as fewer larger ones.
constexpr std::size_t lent_max = 64;

struct Book {
  std::mutex mutex;
  std::vector<pid_t> own;
  std::vector<pid_t> of_mpi;
  std::array<void*, 65> handlers{};
  std::vector<Lent> lent;  // sorted, disjoint
  std::uint64_t pinned_kib = 0;
  bool watched = false;
  bool all_lent = false;
};

// Not destroyed: threads end after it would be.
Book& book() {
  static Book* const only = new Book;
  return *only;
}

struct OwnThread {
  OwnThread() {
    const std::lock_guard<std::mutex> lock(book().mutex);
    book().own.push_back(::gettid());
  }
  ~OwnThread() {
    const std::lock_guard<std::mutex> lock(book().mutex);
    std::erase(book().own, ::gettid());
  }
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;
};

// The two that are nearest to each other become one.
void join_nearest(std::vector<Lent>& lent) {
  std::size_t nearest = 0;
  for (std::size_t i = 1; i + 1 < lent.size(); ++i) {
    if (lent[i + 1].low - lent[i].high < lent[nearest + 1].low - lent[nearest].high) nearest = i;
  }
  lent[nearest].high = lent[nearest + 1].high;
  lent.erase(lent.begin() + static_cast<std::ptrdiff_t>(nearest) + 1);
}

}  // namespace

void note_own_thread() {
  thread_local const OwnThread self;
  (void)self;
}

std::thread start_own_thread(std::function<void()> work) {
  const auto noted = std::make_shared<std::latch>(1);
  std::thread thread([noted, work = std::move(work)] {
    note_own_thread();
    noted->count_down();
    work();
  });
  noted->wait();
  return thread;
}

std::vector<pid_t> threads_of_process() {
  std::vector<pid_t> found;
  for (const std::string& name : kernel_names("/proc/self/task")) {
    if (const int number = std::atoi(name.c_str()); number > 0) found.push_back(number);
  }
  std::ranges::sort(found);
  return found;
}

std::optional<std::uint64_t> number_in(const std::string& status, const char* key, int base) {
  const std::string line = std::string("\n") + key + ":";
  const std::size_t at = status.find(line);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoull(status.c_str() + at + line.size(), nullptr, base);
}

void* handler_of(int signal) {
  struct sigaction action{};
  if (::sigaction(signal, nullptr, &action) != 0) return nullptr;  // the C library's own
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return nullptr;
  return reinterpret_cast<void*>(action.sa_handler);
}

ProcessGuests ProcessGuests::now() {
  ProcessGuests found;
  found.threads = threads_of_process();
  for (int signal = 1; signal < 65; ++signal) {
    found.handlers[static_cast<std::size_t>(signal)] = handler_of(signal);
  }
  found.pinned_kib = number_in(read_kernel_text("/proc/self/status"), "VmPin", 10).value_or(0);
  return found;
}

void note_mpi_begun(const ProcessGuests& before, bool (*is_code_of_mpi)(const void*)) {
  const ProcessGuests after = ProcessGuests::now();
  Book& kept = book();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  kept.watched = true;
  std::ranges::set_difference(after.threads, before.threads, std::back_inserter(kept.of_mpi));
  kept.pinned_kib = after.pinned_kib;
  for (std::size_t signal = 1; signal < after.handlers.size(); ++signal) {
    void* const handler = after.handlers[signal];
    if (handler == nullptr) continue;
    if (handler != before.handlers[signal] || is_code_of_mpi(handler)) {
      kept.handlers[signal] = handler;
    }
  }
}

bool mpi_is_watched() {
  const std::lock_guard<std::mutex> lock(book().mutex);
  return book().watched;
}

std::uint64_t pinned_kib_of_mpi() {
  const std::lock_guard<std::mutex> lock(book().mutex);
  return book().pinned_kib;
}

bool are_guests(const std::vector<pid_t>& threads) {
  Book& kept = book();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  std::erase_if(kept.of_mpi, [&](pid_t one) { return !std::ranges::binary_search(threads, one); });
  return !threads.empty() && std::ranges::all_of(threads, [&](pid_t one) {
    return one == ::gettid() || std::ranges::find(kept.own, one) != kept.own.end() ||
           std::ranges::find(kept.of_mpi, one) != kept.of_mpi.end();
  });
}

bool is_guest_handler(int signal, void* handler) {
  const std::lock_guard<std::mutex> lock(book().mutex);
  return handler != nullptr && book().handlers[static_cast<std::size_t>(signal)] == handler;
}

void lend(std::uintptr_t low, std::uintptr_t high) {
  if (low >= high) return;
  Book& kept = book();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  if (kept.all_lent) return;
  std::vector<Lent>& lent = kept.lent;
  const auto first = std::ranges::lower_bound(lent, low, {}, &Lent::high);
  auto last = first;
  for (; last != lent.end() && last->low <= high; ++last) {
    low = std::min(low, last->low);
    high = std::max(high, last->high);
  }
  lent.insert(lent.erase(first, last), {low, high});
  if (lent.size() > lent_max) join_nearest(lent);
}

void lend_all() {
  const std::lock_guard<std::mutex> lock(book().mutex);
  book().all_lent = true;
}

bool is_lent(std::uintptr_t low, std::uintptr_t high) {
  Book& kept = book();
  const std::lock_guard<std::mutex> lock(kept.mutex);
  return kept.all_lent || std::ranges::any_of(kept.lent, [&](const Lent& one) {
           return one.low < high && low < one.high;
         });
}

}  // namespace perdure
