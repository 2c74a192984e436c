// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/check_shadow.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/assert.hpp"

namespace perdure::ipv_check {
namespace {

// Collects bytes that break one rule.
class Finding {
 public:
  explicit Finding(Rule rule) { breach_.rule = rule; }

  void add(std::size_t word, ByteMask mask, std::uint32_t held, std::uint32_t current,
           SiteNumber stored_at) {
    if (mask == 0) return;
    if (breach_.bytes == 0) {
      breach_.offset = word * word_bytes + static_cast<std::size_t>(std::countr_zero(mask));
      breach_.held = held;
      breach_.current = current;
      breach_.stored_at = stored_at;
    }
    breach_.bytes += count_bytes(mask);
  }

  void tell(std::vector<Breach>& found) const {
    if (breach_.bytes != 0) found.push_back(breach_);
  }

  Breach& breach() { return breach_; }

 private:
  Breach breach_;
};

}  // namespace

CheckShadow::CheckShadow(std::string name, std::byte* begin, std::size_t bytes)
    : Shadow(std::move(name), bytes),
      new_(begin),
      old_(static_cast<std::byte*>(std::malloc(bytes))),
      words_(words_of(bytes)),
      covered_end_(bytes) {
  if (old_ == nullptr) throw std::bad_alloc();
  std::memset(old_.get(), never_stored, bytes);
  for_words(0, bytes, [&](std::size_t word, ByteMask mask) { words_[word].in_new = mask; });
}

void CheckShadow::swap_copies() {
  std::swap_ranges(new_, new_ + bytes(), old_.get());
  for (Word& word : words_) {
    std::swap(word.new_iteration, word.old_iteration);
    std::swap(word.in_new, word.in_old);
  }
  ++counts_.swaps;
}

void CheckShadow::first_store() {
  if (swapped_) return;
  swap_copies();
  swapped_ = true;
  covered_begin_ = covered_end_ = 0;
}

void CheckShadow::copy_to_new(std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  std::memcpy(new_ + begin, old_.get() + begin, end - begin);
  counts_.copied_bytes += end - begin;
  for_words(begin, end, [&](std::size_t number, ByteMask mask) {
    Word& word = words_[number];
    word.in_new = static_cast<ByteMask>(minus(word.in_new, mask) | (word.in_old & mask));
    word.new_iteration = word.old_iteration;
  });
}

// Makes the covered interval reach from where it begins, or `begin`, to `end`; not what is in
// [begin, end) itself, which the caller takes care of.
void CheckShadow::cover(std::size_t begin, std::size_t end) {
  if (covered_begin_ == covered_end_) {
    covered_begin_ = begin;
    covered_end_ = end;
    return;
  }
  if (begin > covered_end_) copy_to_new(covered_end_, begin);
  if (end < covered_begin_) copy_to_new(end, covered_begin_);
  covered_begin_ = std::min(covered_begin_, begin);
  covered_end_ = std::max(covered_end_, end);
}

void CheckShadow::plain() {
  first_store();
  if (covered_begin_ == covered_end_) covered_begin_ = covered_end_ = 0;
  copy_to_new(0, covered_begin_);
  copy_to_new(covered_end_, bytes());
  covered_begin_ = 0;
  covered_end_ = bytes();
}

bool CheckShadow::in_open_row(std::size_t begin, std::size_t end) const {
  return std::ranges::any_of(rows_,
                             [&](const OpenRow& row) { return row.box.contains(begin, end); });
}

void CheckShadow::load(bool from_old, std::size_t offset, std::size_t bytes, Breaches& found) {
  Finding finding(from_old ? Rule::wrong_version_read : Rule::stale_read);
  for_words(offset, offset + bytes, [&](std::size_t number, ByteMask mask) {
    const Word& word = words_[number];
    const ByteMask missing = minus(mask, from_old ? word.in_old : word.in_new);
    finding.add(number, missing, from_old ? word.old_iteration : word.new_iteration,
                from_old ? word.new_iteration : word.old_iteration, word.stored_at);
  });
  finding.tell(found);
  if (finding.breach().bytes != 0 || !in_nest_ || in_open_row(offset, offset + bytes)) return;
  found.push_back({.rule = Rule::read_outside_row, .offset = offset, .bytes = bytes});
}

void CheckShadow::store(bool to_old, std::size_t offset, std::size_t bytes, SiteNumber site,
                        std::uint32_t iteration, Breaches& found) {
  if (to_old) {
    found.push_back({.rule = Rule::store_to_committed, .offset = offset, .bytes = bytes});
  } else if (!in_open_row(offset, offset + bytes)) {
    if (in_nest_) {
      found.push_back({.rule = Rule::store_outside_row, .offset = offset, .bytes = bytes});
    }
    if (!swapped_ || !is_covered(offset, offset + bytes)) {
      ++counts_.unannounced;
      plain();
    }
  }
  Finding broken_promise(Rule::store_after_flush);
  for_words(offset, offset + bytes, [&](std::size_t number, ByteMask mask) {
    Word& word = words_[number];
    if (promised_) {
      broken_promise.add(number, mask & word.flushed, word.new_iteration, word.new_iteration,
                         word.stored_at);
    }
    ByteMask& here = to_old ? word.in_old : word.in_new;
    ByteMask& there = to_old ? word.in_new : word.in_old;
    here |= mask;
    there = minus(there, mask);
    if (!to_old) word.in_row |= mask;
    (to_old ? word.old_iteration : word.new_iteration) = iteration;
    word.stored_at = site;
  });
  broken_promise.tell(found);
}

std::optional<std::ptrdiff_t> CheckShadow::row_begin(const RowBox& box, SiteNumber site) {
  first_store();
  in_nest_ = true;
  const std::size_t begin = box.first, end = box.end();
  const bool is_fresh =
      covered_begin_ == covered_end_ || end <= covered_begin_ || begin >= covered_end_;
  std::size_t row_bytes = 0;
  box.for_rows([&](std::size_t from, std::size_t to) {
    row_bytes += to - from;
    for_words(from, to, [&](std::size_t number, ByteMask mask) {
      words_[number].in_row = minus(words_[number].in_row, mask);
    });
  });
  if (is_fresh) {
    std::size_t reached = begin;  // gaps between its rows
    box.for_rows([&](std::size_t from, std::size_t to) {
      copy_to_new(reached, from);
      reached = std::max(reached, to);
    });
    counts_.fresh_row_bytes += row_bytes;
  } else {
    copy_to_new(begin, std::min(end, covered_begin_));
    copy_to_new(std::max(begin, covered_end_), end);
  }
  cover(begin, end);
  ++counts_.rows;
  rows_.push_back({box, site});
  return is_fresh ? old_.get() - new_ : 0;
}

void CheckShadow::row_end(const RowBox& box, Breaches& found) {
  const auto row = std::find_if(rows_.rbegin(), rows_.rend(),
                                [&](const OpenRow& open) { return open.box == box; });
  if (row == rows_.rend()) {
    found.push_back({.rule = Rule::row_not_begun, .offset = box.first, .bytes = box.counts[0]});
    return;
  }
  Finding finding(Rule::row_not_stored);
  finding.breach().row = row->site;
  box.for_rows([&](std::size_t from, std::size_t to) {
    for_words(from, to, [&](std::size_t number, ByteMask mask) {
      const Word& word = words_[number];
      finding.add(number, minus(mask, word.in_row), word.new_iteration, word.old_iteration,
                  word.stored_at);
    });
  });
  finding.tell(found);
  rows_.erase(std::next(row).base());
}

// Ends the nest, if there is one.
void CheckShadow::close(Breaches& found) {
  for (const OpenRow& row : rows_) {
    found.push_back({.rule = Rule::row_not_ended,
                     .offset = row.box.first,
                     .bytes = row.box.counts[0],
                     .row = row.site});
  }
  rows_.clear();
  in_nest_ = false;
  if (swapped_) plain();
}

void CheckShadow::flush_promised(std::size_t offset, std::size_t bytes) {
  promised_ = true;
  for_words(offset, offset + bytes,
            [&](std::size_t number, ByteMask mask) { words_[number].flushed |= mask; });
}

void CheckShadow::persist(bool commits, Breaches& found) {
  if (in_nest_) found.push_back({.rule = Rule::nest_not_ended, .bytes = bytes()});
  close(found);
  if (promised_) {
    for (Word& word : words_) word.flushed = 0;
    promised_ = false;
  }
  if (!commits || !swapped_) return;
  Finding finding(Rule::stale_commit);
  for_words(0, bytes(), [&](std::size_t number, ByteMask mask) {
    const Word& word = words_[number];
    finding.add(number, minus(mask, word.in_new), word.new_iteration, word.old_iteration,
                word.stored_at);
  });
  finding.tell(found);
  swapped_ = false;
  ++counts_.versions;
}

}  // namespace perdure::ipv_check
