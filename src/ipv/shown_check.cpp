// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/shown_check.hpp"

#include <cstring>

#include "ipv/poison.hpp"
#include "pmem/region.hpp"
#include "pool/array_entry.hpp"

namespace perdure {
namespace {

// Calls use(offset) for each whole word of the rows.
template <typename Use>
void for_words(const BoxRows& rows, const Use& use) {
  rows.for_each([&](ByteRange row) {
    const std::uint64_t end = row.end / Poison::word_bytes * Poison::word_bytes;
    for (std::uint64_t at = align_up(row.begin, Poison::word_bytes); at < end;
         at += Poison::word_bytes) {
      use(at);
    }
  });
}

}  // namespace

void ShownCheck::note(Found found, std::uint64_t byte, std::byte shown, std::byte wanted) {
  if (found_ != Found::nothing) return;
  found_ = found;
  byte_ = byte;
  shown_ = shown;
  wanted_ = wanted;
}

void ShownCheck::compare(const std::byte* shown, std::uint64_t bytes, const LineSet& announced) {
  if (plain_ == nullptr || found_ != Found::nothing) return;
  announced.for_each_run(
      {0, bytes},
      [&](ByteRange run) {
        if (std::memcmp(shown + run.begin, plain_ + run.begin, run.end - run.begin) == 0) return;
        std::uint64_t at = run.begin;
        while (shown[at] == plain_[at]) ++at;
        note(Found::other_byte, at, shown[at], plain_[at]);
      },
      false);
}

void ShownCheck::fill_box(std::byte* shown, const BoxRows& rows) const {
  for_words(rows,
            [&](std::uint64_t at) { std::memcpy(shown + at, &Poison::value, Poison::word_bytes); });
}

void ShownCheck::look_at_box(const std::byte* shown, const BoxRows& rows) {
  for_words(rows, [&](std::uint64_t at) {
    if (std::memcmp(shown + at, &Poison::value, Poison::word_bytes) != 0) return;
    note(Found::poison, at, shown[at], plain_ == nullptr ? std::byte{} : plain_[at]);
  });
}

Status ShownCheck::status(const std::string& name, std::uint64_t version) const {
  if (found_ == Found::nothing) return Status::success();
  if (found_ == Found::poison) {
    return Status(Code::damaged, "verify: on the way to version ", version, " of object ",
                  quoted(name), " a box was announced over byte ", byte_,
                  ", and the nest did not store there, or read there before: what the version "
                  "before holds, ",
                  static_cast<unsigned>(wanted_), ", is not what the nest found (abi.R1, abi.R2)");
  }
  return Status(Code::damaged, "verify: on the way to version ", version, " of object ",
                quoted(name), " byte ", byte_, " shows ", static_cast<unsigned>(shown_), ", not ",
                static_cast<unsigned>(wanted_),
                ", which the version before holds; a nest stored there outside of its box "
                "(abi.R3), or the copy was not complete");
}

}  // namespace perdure
