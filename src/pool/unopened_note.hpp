// SPDX-License-Identifier: BSD-3-Clause
//
// Note of unopened arrays: keeps in a version which of its arrays nobody had open, for those who
// read it (inspect.hpp) and wonder what takes the room. Pure.
//
// What is parsed comes from a medium and is not trusted.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "pool/catalogue.hpp"

namespace perdure {

using ArrayKey = std::pair<std::string, std::uint32_t>;  // name and part

// Whether the scalar is that note.
bool is_unopened_note_name(const std::string& name);

// The arrays of `catalogue` that are not open are these from now on. Whether that needed another
// scalar, which is the last one then.
bool put_unopened(Catalogue& catalogue, const std::set<ArrayKey>& unopened);

// Those that the note names, of the arrays that the version has.
std::set<ArrayKey> unopened_of(const Catalogue& catalogue);

}  // namespace perdure
