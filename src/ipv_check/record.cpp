// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/record.hpp"

#include <algorithm>
#include <utility>

namespace perdure::ipv_check {
namespace {

// What Site::reserved holds: the range that the site's last access fell into, its block or null,
// and in which state of the map that was; in the upper half, when its last store was counted.
enum KeptOfSite : unsigned { site_begin, site_end, site_block, site_changes };

constexpr unsigned half = 32;

constexpr std::uint32_t single_blocks_max = 100;

// A larger struct is no element of an array, and would have a count for each of its bytes.
constexpr std::uint64_t element_bytes_max = 64 << 10U;

void add_counts(Elements::Counts& to, Elements::Counts&& from) {
  if (from.empty()) return;
  to.resize(std::max(to.size(), from.size()));
  for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
  from.clear();
}

void count_places(const Elements& elements, std::size_t word, ByteMask mask,
                  Elements::Counts& counts) {
  if (mask == 0 || elements.type == nullptr || !elements.clear) return;
  const std::uint64_t bytes = elements.type->bytes;
  counts.resize(bytes);
  std::uint64_t place = (word * word_bytes + bytes - elements.phase) % bytes;
  for (std::size_t bit = 0; bit < word_bytes; ++bit) {
    if ((unsigned{mask} >> bit & 1U) != 0) ++counts[place];
    if (++place == bytes) place = 0;
  }
}

Block* block_kept(const Site& site) {
  // An address that this process put there.
  return reinterpret_cast<Block*>(static_cast<std::uintptr_t>(site.reserved[site_block]));
}

RecordWord* words_in(Block& block) {
  if (block.words == nullptr) {
    const std::size_t count = words_of(block.bytes());
    block.words.reset(static_cast<RecordWord*>(std::calloc(count, sizeof(RecordWord))));
    if (block.words == nullptr) throw std::bad_alloc();
  }
  return block.words.get();
}

}  // namespace

Record::Record() : blocks_([this](Block& block) { leave(block); }) {}

Tracked& Record::tracked_at(HeapPlace& place) {
  const bool is_single = now_ == 0 && place.single_blocks < single_blocks_max;
  if (!is_single && place.others != nullptr) return *place.others;
  Tracked& tracked = tracked_.emplace_back();
  tracked.frames = place.frames;
  if (is_single) {
    tracked.ordinal = ++place.single_blocks;
  } else {
    place.others = &tracked;
  }
  return tracked;
}

void Record::put(std::uintptr_t address, std::uint64_t bytes, Tracked& tracked) {
  if (bytes == 0) return;
  blocks_.put(address, address + bytes, tracked);
  ++tracked.blocks;
  tracked.live_bytes += bytes;
  tracked.live_bytes_max = std::max(tracked.live_bytes_max, tracked.live_bytes);
}

void Record::add_variable(std::uintptr_t address, std::uint64_t bytes, const std::string& name,
                          const std::string& file, std::uint32_t line, bool is_scalar) {
  if (bytes == 0) return;
  // A variable of a template or an inline function is announced by each module that has it.
  const BlockMap::Found found = blocks_.find(address);
  if (found.block != nullptr && found.begin == address && found.block->tracked->name == name) {
    return;
  }
  Tracked& tracked = tracked_.emplace_back();
  tracked.kind = is_scalar ? TrackedKind::scalar : TrackedKind::variable;
  tracked.name = name;
  tracked.file = file;
  tracked.line = line;
  put(address, bytes, tracked);
}

void Record::add_named(std::uintptr_t address, std::uint64_t bytes, const std::string& name) {
  Tracked& tracked = tracked_.emplace_back();
  tracked.kind = TrackedKind::named;
  tracked.name = name;
  put(address, bytes, tracked);
  named_[name] = {address, bytes, &tracked, complete_};
}

void* Record::address_of(const std::string& name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? nullptr : reinterpret_cast<void*>(found->second.address);
}

std::uint32_t Record::iterations_of(const std::string& name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? 0 : complete_ - found->second.since;
}

// What was its first block keeps its history.
void Record::resize_named(std::uintptr_t address, std::uint64_t bytes, const std::string& name) {
  const auto found = named_.find(name);
  if (found == named_.end()) return;
  const Named before =
      std::exchange(found->second, {address, bytes, found->second.tracked, complete_});
  const std::uint64_t kept = address == before.address ? std::min(bytes, before.bytes) : 0;
  put(address + kept, bytes - kept, *before.tracked);
  if (kept == 0) moved(before.address, address, std::min(bytes, before.bytes));
  if (kept < before.bytes) {
    blocks_.take(before.address + kept, before.address + before.bytes, TrackedKind::named);
  }
}

void Record::freed(std::uintptr_t address, std::uint64_t bytes) {
  blocks_.take(address, address + bytes, TrackedKind::heap);
}

void Record::moved(std::uintptr_t from, std::uintptr_t to, std::uint64_t bytes) {
  const BlockMap::Found source = blocks_.find(from);
  const BlockMap::Found target = blocks_.find(to);
  if (source.block == nullptr || target.block == nullptr || source.begin != from ||
      target.begin != to || source.block->words == nullptr) {
    return;
  }
  const std::size_t count =
      words_of(std::min<std::size_t>({bytes, source.block->bytes(), target.block->bytes()}));
  target.block->words.reset();
  std::copy_n(source.block->words.get(), count, words_in(*target.block));
  source.block->words.reset();  // its counts go with it
}

void Record::begin_iteration() {
  if (now_ != 0 && now_ > complete_) end_iteration();
  now_ = complete_ + 1;
}

void Record::end_loop() {
  if (now_ == 0) return;
  end_iteration();
  now_ = complete_ + 1;
}

void Record::end_iteration() {
  complete_ = now_;
  for (Tracked& tracked : tracked_) {
    if (complete_ == 1 || tracked.stored_now < tracked.stored_min) {
      tracked.stored_min = tracked.stored_now;
    }
    tracked.stored_max = std::max(tracked.stored_max, tracked.stored_now);
    tracked.totals.add(std::exchange(tracked.if_complete, {}));
    tracked.if_not = {};
    add_counts(tracked.elements.carried, std::move(tracked.elements.if_complete));
    tracked.elements.if_not.clear();
    if (tracked.first_now == 0) continue;
    const bool first = tracked.storing[0] + tracked.storing[1] == 0;
    ++tracked.storing[complete_ % 2];
    if (first || tracked.stored_now < tracked.storing_min) {
      tracked.storing_min = tracked.stored_now;
    }
    const std::uint64_t live = std::max(tracked.live_bytes, tracked.stored_now);
    tracked.kept_max = std::max(tracked.kept_max, live - tracked.stored_now);
    tracked.first_differs |= tracked.first_writer != 0 && tracked.first_writer != tracked.first_now;
    tracked.last_differs |= tracked.last_writer != 0 && tracked.last_writer != tracked.last_now;
    if (tracked.first_writer == 0) tracked.first_writer = tracked.first_now;
    tracked.last_writer = tracked.last_now;
    tracked.stored_now = 0;
    tracked.first_now = tracked.last_now = 0;
  }
  pairs_ = find_exchanges(blocks_, complete_);
}

// Calls use(block, first byte, end) for what of an access is tracked.
template <typename Use>
void Record::for_pieces(std::uintptr_t address, std::uint64_t bytes, Site& site, Use use) {
  const std::uintptr_t end = address + bytes;
  while (address < end) {
    if (static_cast<std::uint32_t>(site.reserved[site_changes]) != blocks_.changes() ||
        address < site.reserved[site_begin] || address >= site.reserved[site_end]) {
      const BlockMap::Found found = blocks_.find(address);
      site.reserved[site_begin] = found.begin;
      site.reserved[site_end] = found.end;
      site.reserved[site_block] = reinterpret_cast<std::uintptr_t>(found.block);
      site.reserved[site_changes] = blocks_.changes();
    }
    const std::uintptr_t stop = std::min<std::uintptr_t>(end, site.reserved[site_end]);
    if (Block* block = block_kept(site)) use(*block, address - block->begin, stop - block->begin);
    address = stop;
  }
}

void Record::load_piece(Block& block, std::size_t begin, std::size_t end, Site& site) {
  RecordWord* words = words_in(block);
  for_words(begin, end, [&](std::size_t number, ByteMask mask) {
    RecordWord& word = words[number];
    if (word.iteration != now_) word.turn(now_);
    const ByteMask fresh = minus(mask, word.stored_now);
    word.read_first_now |= fresh;
    word.read_now |= mask;
    if ((fresh & word.stored) != 0 && block.tracked->carried_at == 0) {
      block.tracked->carried_at = sites_.number_of(site);
      block.tracked->carried_iteration = now_;
    }
  });
}

void Record::store_piece(Block& block, std::size_t begin, std::size_t end, Site& site) {
  RecordWord* words = words_in(block);
  std::uint64_t fresh = 0;
  for_words(begin, end, [&](std::size_t number, ByteMask mask) {
    RecordWord& word = words[number];
    if (word.iteration != now_) word.turn(now_);
    fresh += count_bytes(minus(mask, word.stored_now));
    word.stored_now |= mask;
  });
  block.tracked->stored_now += fresh;
  note_writer(block, site);
}

void Record::note_elements(Block& block, std::size_t begin, Site& site) {
  Tracked& tracked = *block.tracked;
  if (site.type == nullptr || site.offset < 0 || tracked.elements_noted == &site) return;
  tracked.elements_noted = &site;
  const std::uint64_t bytes = site.type->bytes;
  Elements& elements = tracked.elements;
  if (bytes == 0 || bytes > element_bytes_max || bytes > block.bytes()) return;
  const std::uint64_t known = elements.type == nullptr ? 0 : elements.type->bytes;
  if (bytes < known) return;
  const std::uint64_t phase =
      (begin + bytes - static_cast<std::uint64_t>(site.offset) % bytes) % bytes;
  if (bytes > known) {
    elements = {};
    elements.type = std::make_shared<TypeText>(*site.type);
    elements.phase = phase;
  }
  elements.clear &= elements.phase == phase;
}

void Record::note_writer(Block& block, Site& site) {
  Tracked& tracked = *block.tracked;
  const SiteNumber number = sites_.number_of(site);
  if (tracked.first_now == 0) tracked.first_now = number;
  tracked.last_now = number;
  if (site.reserved[site_changes] >> half == now_) return;
  site.reserved[site_changes] = blocks_.changes() | std::uint64_t{now_} << half;
  Writer& writer = tracked.writers[number];
  if (writer.first_iteration == 0) writer.first_iteration = now_;
  if (writer.last_iteration != now_) ++writer.iterations;
  writer.last_iteration = now_;
}

void Record::load(std::uintptr_t address, std::uint64_t bytes, Site& site) {
  if (now_ == 0 || finished_) return;
  for_pieces(address, bytes, site, [&](Block& block, std::size_t begin, std::size_t end) {
    note_elements(block, begin, site);
    load_piece(block, begin, end, site);
  });
}

void Record::store(std::uintptr_t address, std::uint64_t bytes, Site& site) {
  if (now_ == 0 || finished_) return;
  for_pieces(address, bytes, site, [&](Block& block, std::size_t begin, std::size_t end) {
    note_elements(block, begin, site);
    store_piece(block, begin, end, site);
  });
}

namespace {

ByteTotals judge(const RecordWord& word) {
  ByteTotals totals;
  totals.carried = count_bytes(word.carried);
  for (std::size_t odd = 0; odd < 2; ++odd) {
    totals.alive_after[odd] = count_bytes(word.alive_after[odd]);
  }
  totals.rewritten = count_bytes(minus(word.rewritten, word.carried));
  totals.read_only = count_bytes(minus(word.read, word.stored));
  totals.stored = count_bytes(word.stored);
  totals.unread = count_bytes(minus(word.stored, word.read));
  return totals;
}

// After the loop: only what is read first, of what the loop stored, counts.
ByteTotals judge_without_now(RecordWord word) {
  ByteTotals totals = judge(word);
  const auto late = static_cast<ByteMask>(word.read_first_now & word.stored);
  totals.after_loop = count_bytes(minus(late, word.carried));
  totals.unread = count_bytes(minus(minus(word.stored, word.read), late));
  return totals;
}

}  // namespace

// Adds up a block that goes.
void Record::leave(Block& block) {
  Tracked& tracked = *block.tracked;
  tracked.live_bytes -= block.bytes();
  if (block.words == nullptr) return;
  const std::size_t count = words_of(block.bytes());
  for (std::size_t i = 0; i < count; ++i) {
    RecordWord word = block.words.get()[i];
    if (word.iteration == 0) continue;
    const ByteTotals without = judge_without_now(word);
    const bool is_settled = word.iteration <= complete_;
    const ByteMask carried_without = word.carried;
    word.turn(now_);
    Elements& elements = tracked.elements;
    if (is_settled) {
      tracked.totals.add(judge(word));
      count_places(elements, i, word.carried, elements.carried);
    } else {
      tracked.if_complete.add(judge(word));
      tracked.if_not.add(without);
      count_places(elements, i, word.carried, elements.if_complete);
      count_places(elements, i, carried_without, elements.if_not);
    }
  }
}

void Record::finish() {
  finished_ = true;
  blocks_.for_all([this](Block& block) { leave(block); });
  for (Tracked& tracked : tracked_) {
    tracked.totals.add(std::exchange(tracked.if_not, {}));
    add_counts(tracked.elements.carried, std::move(tracked.elements.if_not));
    if (tracked.carried_iteration > complete_) tracked.carried_at = 0;
    for (auto& [site, writer] : tracked.writers) {
      if (writer.last_iteration > complete_) --writer.iterations;
    }
    std::erase_if(tracked.writers, [](const auto& entry) { return entry.second.iterations == 0; });
  }
}

}  // namespace perdure::ipv_check
