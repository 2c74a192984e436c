// SPDX-License-Identifier: BSD-3-Clause
//
// Policies: which page leaves, and which memory a page comes to. One file each, in policies/.
//
// A policy is a class with
//   explicit P(const PolicySetup& setup)     setup.memory lives as long as the policy
//   void grow(std::uint32_t pages)           ids below `pages` may come from now on
//   void hit(PageId page)                    `page` is referenced and resident
//   Place miss(PageId page)                  it is not: make room with memory.evict() if needed,
//                                            and say to which memory with a free frame it goes
// and, where it can't work with every machine,
//   static Status check(const PolicySetup& setup)
// and, where miss() asks memory.counters(), whose accesses are otherwise added later,
//   static constexpr bool looks_at_counters = true
// Exactly one of hit and miss is called for each record, before its accesses are counted. The file
// ends with its entry for the table,
//   PolicyEntry NAME_policy()   that returns policy_entry<P>({.name = "NAME", …})
// and NAME is added to the list in CMakeLists.txt: nothing else. policies/fifo.cpp is the template:
// copy it. The tests then try the new one on random traces by themselves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "sim/account.hpp"
#include "sim/memory.hpp"
#include "trace/record.hpp"

namespace perdure::sim {

// An option of a policy: one of `choices`, or, where there are none, a number from least to most.
struct PolicyOption {
  std::string name;
  std::string default_value;
  std::string description;
  std::vector<std::string> choices = {};
  double least = 0;
  double most = 0;
};

// Every option of the policy with its value, checked.
class OptionValues {
 public:
  std::map<std::string, std::string> values;
  double number(const std::string& name) const;
  bool is(const std::string& name, const std::string& choice) const {
    return values.at(name) == choice;
  }
};

struct PolicySetup {
  Memory& memory;
  OptionValues options;
  // Only where the entry asks for them:
  std::span<const trace::PageCounts> counts = {};  // accesses of each page over the whole trace
  std::span<const std::uint64_t> next_uses = {};   // of each record: the next one to its page
  const Devices* devices = nullptr;
  std::uint64_t floor_pages = 0;  // of the trace's reduction
};

inline constexpr std::uint64_t never = ~std::uint64_t{0};

// A policy and the memory, ready to be fed.
class Replay {
 public:
  virtual ~Replay() = default;
  virtual void grow(std::uint32_t pages) = 0;
  virtual void feed(std::span<const trace::Record> records) = 0;
};

struct PolicyEntry {
  std::string name;
  std::string description;
  std::vector<PolicyOption> options = {};
  bool needs_counts = false;
  bool needs_future = false;  // next_uses: the whole trace is read before
  bool is_bound = false;      // not a policy that a system could have
  // With a reduced trace, faults and write-backs are those of the whole one (reducer.hpp).
  bool exact_when_reduced = false;
  Result<std::unique_ptr<Replay>> (*create)(const PolicySetup& setup) = nullptr;
};

// The loop of the simulator: one record after the other.
template <typename Policy>
class ReplayOf final : public Replay {
 public:
  explicit ReplayOf(const PolicySetup& setup) : memory_(setup.memory), policy_(setup) {}
  void grow(std::uint32_t pages) override {
    memory_.grow(pages);
    policy_.grow(pages);
  }
  void feed(std::span<const trace::Record> records) override {
    Accesses accesses;
    for (const trace::Record& record : records) {
      if (memory_.resident(record.page)) {
        policy_.hit(record.page);
      } else {
        if constexpr (requires { Policy::looks_at_counters; }) memory_.count(accesses);
        memory_.load(record.page, policy_.miss(record.page));
      }
      memory_.access(record.page, record.reads, record.writes, accesses);
    }
    memory_.count(accesses);
  }

 private:
  Memory& memory_;
  Policy policy_;
};

template <typename Policy>
PolicyEntry policy_entry(PolicyEntry entry) {
  entry.create = [](const PolicySetup& setup) -> Result<std::unique_ptr<Replay>> {
    if constexpr (requires { Policy::check(setup); }) PERDURE_TRY(Policy::check(setup));
    return std::unique_ptr<Replay>(std::make_unique<ReplayOf<Policy>>(setup));
  };
  return entry;
}

// All policies, in the order of CMakeLists.txt; and one by name.
std::vector<const PolicyEntry*> policies();
Result<const PolicyEntry*> find_policy(const std::string& name);

// `given` over the defaults; unknown names and impossible values are Code::invalid_argument.
Result<OptionValues> check_options(const PolicyEntry& entry,
                                   const std::map<std::string, std::string>& given);

}  // namespace perdure::sim
