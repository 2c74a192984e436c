// SPDX-License-Identifier: BSD-3-Clause
//
// Which pages are hot: those that MRAM holds under MRAM-fixed (paging paper, section 3.1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/policy.hpp"
#include "trace/record.hpp"

namespace perdure::sim {

enum class Rank {
  count,   // by accesses, as in the paper
  energy,  // by what their accesses cost less in MRAM than in DRAM
};

// For each page whether it is among the `frames` first; pages that are never accessed are not. Of
// equal pages the one that was touched first is first. `devices` only with Rank::energy, whose
// energies must be known.
std::vector<bool> hot_pages(std::span<const trace::PageCounts> counts, std::uint64_t frames,
                            Rank rank, const Devices* devices);

// The option of policies that rank, and what it says.
PolicyOption rank_option();
Rank rank_of(const PolicySetup& setup);
std::vector<bool> hot_pages(const PolicySetup& setup);

// Code::invalid_argument if Rank::energy lacks a number.
Status check_rank(Rank rank, const Devices& devices);

}  // namespace perdure::sim
