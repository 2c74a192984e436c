// SPDX-License-Identifier: BSD-3-Clause
//
// Box note: keeps the boxes of arrays in a version, for those who read it (inspect.hpp). Pure.
//
// What is parsed comes from a medium and is not trusted.
#pragma once

#include <optional>
#include <string>

#include "pool/catalogue.hpp"

namespace perdure {

// The array's box in `catalogue` is this one from now on; null: it has none. Whether that needed
// another scalar, which is the last one then.
bool put_box(Catalogue& catalogue, const std::string& name, std::uint32_t part,
             const GlobalBox* box);

// What it notes of the array; nothing: that has none.
std::optional<GlobalBox> find_box(const Catalogue& catalogue, const std::string& name,
                                  std::uint32_t part);

// Whether the scalar is a note of a box.
bool is_box_note_name(const std::string& name);

// Those of the arrays that the version has, where they fit these.
GlobalBoxes boxes_of(const Catalogue& catalogue);

}  // namespace perdure
