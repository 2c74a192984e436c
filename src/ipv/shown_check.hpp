// SPDX-License-Identifier: BSD-3-Clause
//
// Shown check (PERDURE_IPV=verify=on): what the address of a streamed object shows, against the
// plain copy of its last version (version_check.hpp). It finds what a box that was announced
// wrongly does, by a compiler or by hand, and copies that changed roles and were not complete:
//
//   - outside of announced boxes, and before other stores, the address shows the plain copy;
//   - a box that is the first of an iteration is filled with poison, from which its nest reads
//     nothing, and of which it leaves nothing: no word that it did not store to, and no number
//     that was computed from one.
//
// The first difference stays, and is an error of each version from then on.
// Threads: under the object's lock; compare() in a fault handler, too. No failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.hpp"
#include "ipv/box_rows.hpp"
#include "ipv/line_set.hpp"

namespace perdure {

class ShownCheck {
 public:
  // `plain` is what the last version holds, in the program's memory; it stays until the next call.
  void take(const std::byte* plain) { plain_ = plain; }

  void compare(const std::byte* shown, std::uint64_t bytes, const LineSet& announced);
  void fill_box(std::byte* shown, const BoxRows& rows) const;
  void look_at_box(const std::byte* shown, const BoxRows& rows);

  // Of object `name`, on the way to version `version`.
  Status status(const std::string& name, std::uint64_t version) const;

 private:
  enum class Found : std::uint8_t { nothing, other_byte, poison };
  void note(Found found, std::uint64_t byte, std::byte shown, std::byte wanted);

  const std::byte* plain_ = nullptr;
  Found found_ = Found::nothing;
  std::uint64_t byte_ = 0;
  std::byte shown_{};
  std::byte wanted_{};
};

}  // namespace perdure
