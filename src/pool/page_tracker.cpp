// SPDX-License-Identifier: BSD-3-Clause
#include "pool/page_tracker.hpp"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/environment.hpp"
#include "base/fork_guard.hpp"
#include "pool/fault_tracker.hpp"
#include "pool/written_tracker.hpp"

namespace perdure {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{2} << 20U;
constexpr std::size_t compared_bytes_max = std::size_t{16} << 10U;
constexpr std::uint8_t foreseen_versions = 60;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Of all trackers of the process: one that protects a page takes from the other what was stored.
std::mutex watched_mutex;
std::map<std::uintptr_t, std::uintptr_t>& watched() {
  static auto* const ranges = new std::map<std::uintptr_t, std::uintptr_t>;  // outlives all
  return *ranges;
}

Status claim(std::uintptr_t begin, std::uintptr_t end) {
  const std::lock_guard<std::mutex> lock(watched_mutex);
  static std::uint64_t depth = fork_depth();
  if (std::exchange(depth, fork_depth()) != depth) watched().clear();  // they are the parent's
  const auto above = watched().lower_bound(end);
  if (above != watched().begin() && std::prev(above)->second > begin) {
    return {Code::invalid_argument,
            "the buffer overlaps that of another array in log mode, and what changed can be "
            "noted for one of them only; use PERDURE_MARKS, PERDURE_COMPARE or mode copy"};
  }
  watched().emplace(begin, end);
  return Status::success();
}

void give_back(std::uintptr_t begin) {
  const std::lock_guard<std::mutex> lock(watched_mutex);
  watched().erase(begin);
}

// What the environment asks for, or what there is.
Result<TrackerKind> choose_kind() {
  const std::string asked = environment("PERDURE_TRACKER");
  if (asked == "faults") return TrackerKind::faults;
  if (asked == "kernel") return TrackerKind::kernel;
  if (asked.empty()) {
    return WrittenTracker::available().ok() ? TrackerKind::kernel : TrackerKind::faults;
  }
  return Status(Code::invalid_argument, "PERDURE_TRACKER=", asked, " is neither kernel nor faults");
}

Result<std::unique_ptr<PageTracker>> make(std::byte* base, std::size_t size_bytes,
                                          TrackerKind kind) {
  PERDURE_TRY_ASSIGN(const TrackerKind chosen, PageTracker::chosen_kind());
  if (kind == TrackerKind::chosen) kind = chosen;
  if (kind == TrackerKind::faults) return FaultTracker::create(base, size_bytes);
  return WrittenTracker::create(base, size_bytes);
}

}  // namespace

PageTracker::PageTracker(std::byte* base, std::size_t size_bytes)
    : base_(base), size_bytes_(size_bytes), chunks_((size_bytes + chunk_bytes - 1) / chunk_bytes) {}

PageTracker::~PageTracker() {
  PERDURE_ASSERT(stopped_);  // by the destructors of both kinds
}

void PageTracker::stop(bool mapped) {
  if (stopped_.exchange(true)) return;
  unwatch(mapped);
  give_back(reinterpret_cast<std::uintptr_t>(base_));
}

Result<TrackerKind> PageTracker::chosen_kind() {
  static const Result<TrackerKind> chosen = choose_kind();
  return chosen;
}

bool PageTracker::is_worth_it(std::size_t size_bytes, TrackerKind kind) {
  static const bool asked = !environment("PERDURE_TRACKER").empty();
  return asked || kind != TrackerKind::chosen || size_bytes > compared_bytes_max;
}

bool PageTracker::can_watch(const std::byte* base) {
  return reinterpret_cast<std::uintptr_t>(base) % page_bytes() == 0;
}

Result<std::unique_ptr<PageTracker>> PageTracker::create(std::byte* base, std::size_t size_bytes,
                                                         TrackerKind kind) {
  PERDURE_ASSERT(can_watch(base));
  const std::size_t page = page_bytes();
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::size_t whole = (size_bytes + page - 1) / page * page;
  PERDURE_TRY(claim(address, address + whole));
  auto made = make(base, whole, kind);
  if (!made.ok()) give_back(address);
  return made;
}

ByteRange PageTracker::range_of(std::size_t first, std::size_t end) const {
  return {first * chunk_bytes, std::min(end * chunk_bytes, size_bytes_)};
}

Status PageTracker::watch() {
  for (Chunk& chunk : chunks_) chunk = {};
  return protect({0, size_bytes_});
}

Status PageTracker::collect(PageSet& changed) {
  if (stopped_) return {Code::wrong_state, "the buffer's memory is not watched any more"};
  for (std::size_t first = 0; first < chunks_.size();) {
    const bool left = chunks_[first].left;
    std::size_t end = first;
    while (end < chunks_.size() && chunks_[end].left == left) ++end;
    if (left) {
      changed.add(range_of(first, end));
    } else {
      PERDURE_TRY(take(range_of(first, end), changed));
    }
    first = end;
  }
  for (std::size_t number = 0; number < chunks_.size(); ++number) {
    const ByteRange range = range_of(number, number + 1);
    note(chunks_[number], range, changed);
    PERDURE_TRY(choose(chunks_[number], range));
  }
  return Status::success();
}

void PageTracker::note(Chunk& chunk, ByteRange range, const PageSet& changed) const {
  const PageRun pages = changed.pages_of(range);
  const std::uint64_t count = changed.count(pages);
  const bool full = count * 8 >= (pages.end - pages.first) * 7;
  if (count != 0 && !full) chunk.full = 0;
  chunk.full = static_cast<std::uint8_t>(chunk.full << 1U | (full ? 1U : 0U));
  if (full && !chunk.left) chunk.foreseen = 0;
}

// Whether the chunk is watched until the next collect().
Status PageTracker::choose(Chunk& chunk, ByteRange range) {
  const bool always = (chunk.full & 0b111U) == 0b111U;
  const bool in_turn = (chunk.full & 0b1111U) == 0b1010U;
  const bool leave = (always || in_turn) && chunk.foreseen < foreseen_versions;
  if (leave) ++chunk.foreseen;
  if (std::exchange(chunk.left, leave) == leave) return Status::success();
  return leave ? release(range) : protect(range);
}

}  // namespace perdure
