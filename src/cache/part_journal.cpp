// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_journal.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "base/checksum.hpp"

namespace perdure {
namespace {

std::atomic<std::uint64_t> journals_made{0};

// The entries that a thread has at hand, of a few journals: of one whose number leaves the same
// rest.
struct ThreadEntry {
  std::uint64_t journal = 0;
  JournalFormat* entry = nullptr;
  std::uint32_t calls = 0;  // without an entry
};
constexpr std::size_t thread_entries = 16;
constexpr std::size_t spare_entries = 64;  // 260 KiB
[[gnu::tls_model("initial-exec")]] thread_local constinit std::array<ThreadEntry, thread_entries>
    entries_at_hand;

// The journals of this process by their numbers, for threads that end after a part was closed.
struct LivingJournals {
  std::mutex mutex;
  std::map<std::uint64_t, PartJournal*> by_number;
};
LivingJournals& living_journals() {
  // Threads may end after static objects have gone.
  static LivingJournals& journals = *new LivingJournals;
  return journals;
}

std::uint64_t checksum_of(const JournalFormat& entry, std::uint64_t length) {
  const std::uint64_t seed = crc64(&entry.offset, sizeof entry.offset, length);
  return crc64(entry.bytes, length, seed) | 1;
}

}  // namespace

PartJournal::PartJournal(Device& device, std::span<JournalFormat> entries)
    : device_(device), entries_(entries), number_(++journals_made) {
  LivingJournals& journals = living_journals();
  const std::lock_guard<std::mutex> lock(journals.mutex);
  journals.by_number[number_] = this;
}

PartJournal::~PartJournal() {
  LivingJournals& journals = living_journals();
  const std::lock_guard<std::mutex> lock(journals.mutex);
  journals.by_number.erase(number_);
}

void PartJournal::join(std::uint32_t number) {
  owner_ = number;
  (void)claim_entry(common_);  // asked for again when it is needed
}

void PartJournal::leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (JournalFormat* entry : taken_) word(entry->owner).store(0, std::memory_order_release);
  taken_.clear();
  common_ = nullptr;
}

// Null: all of them are taken. Failure: there is no room for one.
Status PartJournal::claim_entry(JournalFormat*& to) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::size_t at = 0; at < entries_.size(); ++at) {
    JournalFormat& entry = entries_[at];
    if (at == ready_) PERDURE_TRY(device_.allocate(offset_of(&entry), sizeof entry));
    ready_ = std::max(ready_, at + 1);
    std::uint64_t nobody = 0;
    if (!word(entry.owner).compare_exchange_strong(nobody, owner_)) continue;
    taken_.push_back(&entry);
    to = &entry;
    break;
  }
  return Status::success();
}

// A block that there is no room for may hold all that is left until it is refused.
JournalFormat* PartJournal::common_entry() {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (common_ == nullptr && !claim_entry(common_).ok()) {
    if (std::chrono::steady_clock::now() > give_up) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return common_;
}

PartJournal::Turn::Turn(PartJournal& journal) : entry_(journal.entry_for_small()) {
  if (entry_ != nullptr) return;
  turn_ = std::unique_lock<std::mutex>(journal.turns_);
  entry_ = journal.common_entry();
}

Status PartJournal::take_spare_room() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (has_spare_room_) return Status::success();
  const std::size_t ready = std::min(ready_ + spare_entries, entries_.size());
  if (ready != ready_) {
    const std::size_t bytes = (ready - ready_) * sizeof(JournalFormat);
    PERDURE_TRY(device_.allocate(offset_of(&entries_[ready_]), bytes));
  }
  ready_ = ready;
  has_spare_room_ = true;
  return Status::success();
}

std::vector<JournalFormat*> PartJournal::entries() const {
  std::vector<JournalFormat*> used;
  for (std::size_t at = 0; at < entries_.size();) {
    const std::uint64_t offset = offset_of(&entries_[at]);
    const std::uint64_t data = device_.next_allocated(offset);
    if (data > offset) {
      at += (data - offset + sizeof(JournalFormat) - 1) / sizeof(JournalFormat);
    } else {
      used.push_back(&entries_[at++]);
    }
  }
  return used;
}

void PartJournal::give_entry(std::uint64_t journal, JournalFormat* entry) {
  if (entry == nullptr) return;
  LivingJournals& journals = living_journals();
  const std::lock_guard<std::mutex> lock(journals.mutex);
  const auto found = journals.by_number.find(journal);
  if (found == journals.by_number.end()) return;
  const std::lock_guard<std::mutex> taken(found->second->mutex_);
  // The part may have been left, and the entry be another's.
  if (std::erase(found->second->taken_, entry) == 0) return;
  word(entry->owner).store(0, std::memory_order_release);
}

// Called when a thread needs an entry for the first time, and gives them all back when it ends.
void PartJournal::watch_thread() {
  struct End {
    ~End() {
      for (const ThreadEntry& held : entries_at_hand) give_entry(held.journal, held.entry);
    }
  };
  static thread_local End end;
  (void)end;
}

void PartJournal::give_entry_of_thread() {
  ThreadEntry& mine = entries_at_hand[number_ % thread_entries];
  if (mine.journal != number_) return;
  give_entry(number_, mine.entry);
  mine = {};
}

JournalFormat* PartJournal::entry_of_thread(std::uint32_t first) {
  ThreadEntry& mine = entries_at_hand[number_ % thread_entries];
  if (mine.journal == number_ && mine.entry != nullptr) return mine.entry;
  if (mine.journal != number_) {
    watch_thread();
    give_entry(mine.journal, mine.entry);
    mine = {number_, nullptr};
  }
  if (++mine.calls >= first && std::has_single_bit(mine.calls)) (void)claim_entry(mine.entry);
  return mine.entry;
}

bool PartJournal::is_intended(const JournalFormat& entry, bool same_boot) {
  if (entry.length == 0 || entry.length > journal_bytes) return false;
  if (entry.checksum == 0) return same_boot;
  return entry.checksum == checksum_of(entry, entry.length);
}

bool PartJournal::may_be_writing(std::uint64_t offset, std::uint64_t bytes) const {
  const auto meets = [&](std::uint64_t begin, std::uint64_t length) {
    return offset < begin + length && begin < offset + bytes;
  };
  for (const JournalFormat* entry : entries()) {
    if (entry->length != 0 && meets(entry->offset, journal_bytes)) return true;
    if (entry->writing_bytes != 0 && meets(entry->writing_offset, entry->writing_bytes))
      return true;
  }
  return false;
}

std::vector<JournalFormat*> PartJournal::intended(bool same_boot) const {
  std::vector<JournalFormat*> found;
  for (JournalFormat* entry : entries()) {
    if (is_intended(*entry, same_boot)) found.push_back(entry);
  }
  return found;
}

Status PartJournal::forget_durably(JournalFormat& entry) {
  forget(entry);
  return device_.fence();
}

// In this order: to a process of the same boot a length without a checksum is intended.
void PartJournal::forget(JournalFormat& entry) {
  device_.store_word(offset_of(&entry.length), 0);
  device_.store_word(offset_of(&entry.checksum), 0);
  device_.flush(offset_of(&entry.length),
                offsetof(JournalFormat, writing_offset) - offsetof(JournalFormat, length));
}

void PartJournal::forget_all() {
  for (JournalFormat* entry : entries()) {
    if (entry->length != 0) forget(*entry);
  }
}

Status PartJournal::Intention::declare_durably() {
  entry_.checksum = checksum_of(entry_, bytes_);
  declare();
  journal_.device_.flush(journal_.offset_of(&entry_), offsetof(JournalFormat, bytes) + bytes_);
  return journal_.device_.fence();
}

}  // namespace perdure
