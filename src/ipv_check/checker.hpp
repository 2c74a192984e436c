// SPDX-License-Identifier: BSD-3-Clause
//
// Checker: the objects of in-place versioning of a process, each with its shadow, and what broke
// the rules of perdure_ipv_abi.h, or the contract of a pair.
//
// It stands in for the runtime: objects begin with what they hold, no pool is written or read, and
// versions count from 0. Each kind of breach is reported once per place and object, and counted.
//
// Threads: one at a time. Failure: a Status with what was passed and what is allowed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.hpp"
#include "ipv_check/shadow.hpp"
#include "ipv_check/sites.hpp"

namespace perdure::ipv_check {

struct Violation {
  std::string object;
  SiteNumber site = 0;
  std::uint32_t iteration = 0;  // first
  std::uint32_t last_iteration = 0;
  std::uint64_t count = 0;
  Breach breach;  // the first
};

// Each kind of breach once per place and object, and how often it was met.
class Violations {
 public:
  // The new violation; null: it is known.
  const Violation* add(const Shadow& shadow, SiteNumber site, std::uint32_t iteration,
                       const Breach& breach);
  const std::vector<Violation>& all() const { return all_; }
  std::uint64_t count() const { return count_; }

 private:
  std::vector<Violation> all_;
  std::map<std::tuple<Rule, const Shadow*, SiteNumber>, std::size_t> known_;
  std::uint64_t count_ = 0;
};

class Checker {
 public:
  using Tell = std::function<void(const std::string&)>;

  // `tell` is given a sentence for each new violation.
  explicit Checker(Tell tell) : tell_(std::move(tell)) {}

  Status open(unsigned every);
  Status add(const std::string& name, void* address, std::size_t bytes);
  Status add_pair(const std::string& name, void* a, void* b, std::size_t bytes);
  // It is as long as `bytes`, and lies there, with its contents. `other`: the second of a pair.
  Status resize(const std::string& name, void* address, std::size_t bytes, void* other = nullptr);
  Status restart();
  Status persist(SiteNumber site, std::uint64_t* version);
  Status close(SiteNumber site);
  Status pin(const void* address, bool pins);
  Result<Shadow*> find(const std::string& name) const;
  Result<void*> alive(const std::string& name) const;  // of a pair

  void load(std::uintptr_t address, std::uint64_t bytes, Site& site);
  void store(std::uintptr_t address, std::uint64_t bytes, Site& site);

  // As the functions of perdure_ipv_abi.h; `box` has addresses for offsets.
  // Nothing: it does not lie in one object.
  std::optional<std::ptrdiff_t> row_begin(const RowBox& box, SiteNumber site);
  void row_end(const RowBox& box, SiteNumber site);
  void nest_end(std::uintptr_t address, SiteNumber site);
  void plain(std::uintptr_t address);
  // Of the object that holds the address; both 0: none.
  std::pair<std::uintptr_t, std::uintptr_t> extent(std::uintptr_t address) const;
  void touch(std::uintptr_t address, std::size_t bytes, SiteNumber site);
  void flush_promised(std::uintptr_t address, std::size_t bytes);

  SiteNumber number_of(Site& site) { return sites_.number_of(site); }
  const SiteTable& sites() const { return sites_; }
  const std::vector<Violation>& violations() const { return violations_.all(); }
  std::uint64_t violation_count() const { return violations_.count(); }
  std::uint64_t loads() const { return loads_; }
  std::uint64_t stores() const { return stores_; }
  std::uint32_t iterations() const { return complete_; }
  std::uint64_t versions() const { return version_; }
  std::vector<const Shadow*> objects() const;

  // Where objects and their other copies lie; objects alone. Both 0: nowhere.
  std::pair<std::uintptr_t, std::uintptr_t> reach() const;
  std::pair<std::uintptr_t, std::uintptr_t> bounds() const;

  std::string sentence(const Violation& violation) const;

 private:
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    Shadow* shadow = nullptr;  // null: between two
    bool other = false;        // an object's old copy, the second array of a pair
  };
  Status check_new(const std::string& name, const void* address, std::size_t bytes) const;
  void put(std::unique_ptr<Shadow> shadow);
  Range range_of(std::uintptr_t address) const;
  Shadow* object_at(std::uintptr_t address) const;
  std::uint32_t iteration() const { return complete_ + 1; }
  template <typename Use>
  void for_pieces(std::uintptr_t address, std::uint64_t bytes, Site& site, Use use);
  template <typename Use>
  void for_objects(std::uintptr_t address, std::size_t bytes, Use use);
  void report(const Shadow& shadow, SiteNumber site);
  Shadow* object_of_box(RowBox& box) const;

  Tell tell_;
  SiteTable sites_;
  bool is_open_ = false;
  unsigned every_ = 1;
  std::uint64_t version_ = 0;
  bool is_active_ = false;      // restarted, and not closed
  std::uint32_t complete_ = 0;  // iterations
  std::map<std::string, std::unique_ptr<Shadow>> objects_;
  std::vector<std::unique_ptr<Shadow>> closed_;  // for the report
  std::map<std::string, unsigned> pins_;
  std::vector<Range> ranges_;  // of both copies, ascending
  std::uint32_t changes_ = 1;  // of ranges_
  Shadow::Breaches found_;
  Violations violations_;
  std::uint64_t loads_ = 0;
  std::uint64_t stores_ = 0;
};

}  // namespace perdure::ipv_check
