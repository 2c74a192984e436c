// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/shadow.hpp"

#include <iterator>

namespace perdure::ipv_check {
namespace {

// In the order of Rule.
constexpr struct {
  const char* name;
  const char* text;
} rules[] = {
    {"stale_read", "the load finds a stale value"},
    {"wrong_version_read", "the load goes to the old copy, after the store to the new one"},
    {"row_not_stored", "a row ends that was not wholly stored to"},
    {"read_outside_row", "within a nest, a load from no row that is begun"},
    {"store_outside_row", "within a nest, a store to no row that is begun"},
    {"store_to_committed", "the store goes to the committed copy"},
    {"row_not_begun", "a row ends that was not begun"},
    {"row_not_ended", "a nest ends within a row"},
    {"nest_not_ended", "a persistence point within a nest: box_end is missing"},
    {"store_after_flush", "a store to what perdure_flush_async() was given before"},
    {"stale_commit", "the new version holds stale values"},
    {"not_overwritten", "the iteration did not overwrite what an earlier one stored to"},
    {"read_before_store", "the load finds what the iteration has still to overwrite"},
    {"unequal_walls",
     "the load finds what no iteration stores to, and the two arrays differ there"},
};
static_assert(std::size(rules) == static_cast<std::size_t>(Rule::unequal_walls) + 1);

}  // namespace

const char* rule_name(Rule rule) {
  return rules[static_cast<std::size_t>(rule)].name;
}

const char* rule_text(Rule rule) {
  return rules[static_cast<std::size_t>(rule)].text;
}

}  // namespace perdure::ipv_check
