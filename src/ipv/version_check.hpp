// SPDX-License-Identifier: BSD-3-Clause
//
// Version check (PERDURE_IPV=verify=on): a plain copy of every object at each persistence point,
// and the version that was made of it, byte by byte. It finds stores that no tracker saw, stores
// into a committed copy, and copies that were not complete, in a real run; it costs a copy of all
// objects in memory, and some more passes over them an iteration. What a box that was announced
// wrongly leaves in a streamed object is found by shown_check.hpp, what a pair does by poison.hpp.
//
// Threads: of the program's thread.
#pragma once

#include <memory>
#include <vector>

#include "ipv/object.hpp"
#include "pool/array_table.hpp"

namespace perdure {

class VersionCheck {
 public:
  using Objects = std::vector<std::unique_ptr<InPlaceObject>>;
  // All objects have been handed over, or restored.
  void take(const Objects& objects);
  // Version `version` was committed, with `arrays`: objects may have got another size and place
  // since. Code::damaged names the first byte that differs from what was taken.
  Status compare(const Objects& objects, const ArrayTable& arrays, const Device& device,
                 std::uint64_t version) const;

 private:
  std::vector<std::vector<std::byte>> taken_;  // by object
};

}  // namespace perdure
