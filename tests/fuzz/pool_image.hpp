// SPDX-License-Identifier: BSD-3-Clause
//
// Images of a pool's files for fuzzing: how they are made, and how their checksums are made right.
#pragma once

#include <cstdint>

#include "pool/catalogue.hpp"
#include "targets.hpp"

namespace perdure::fuzz {

struct ImageRequest {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t slots = 3;
  unsigned commits = 4;
  bool restores = false;  // goes back to an older version and commits from there
  bool sizes = false;     // arrays change their size with each version, and one is erased
  bool checksums = true;
  std::uint64_t slot_bytes = 1024;  // 256: the arrays are in a tree
};

// The file of a rank with an array of each mode and two scalars.
Bytes make_image(const ImageRequest& request);
Bytes make_job_record(std::uint32_t ranks);

// How far an image is made right.
enum class Repair : std::uint8_t {
  nothing,
  checksums,  // of header, bodies, and tables; the tags of state words
  lineage,    // state words of complete slots say what the bodies do as well
};
void repair_image(Bytes& image, Repair how);
void repair_job_record(Bytes& record);

}  // namespace perdure::fuzz
