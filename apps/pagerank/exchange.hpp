// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges of lists between the ranks of MPI_COMM_WORLD. Both are collective.
#pragma once

#include <cstdint>
#include <vector>

namespace pagerank {

// Sends words[r] to rank r; returns what the ranks sent, in their order.
std::vector<std::uint64_t> exchange_words(const std::vector<std::uint64_t>& words);

// Sends lists[r] to rank r and returns what the ranks sent, in their order; counts[r] is how much
// of it is rank r's. Throws job::SharedError if that is more than 2^31 elements.
std::vector<std::uint32_t> exchange_lists(const std::vector<std::vector<std::uint32_t>>& lists,
                                          std::vector<int>& counts);

}  // namespace pagerank
