// SPDX-License-Identifier: BSD-3-Clause
//
// Sites: the places of the source where a program accesses memory, by number.
//
// Texts are copied when a site is first seen, so that a module may be unloaded. Threads: one at a
// time. No failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perdure/perdure_ipv_check_abi.h"

namespace perdure::ipv_check {

using SiteNumber = std::uint32_t;  // 0: no site is known
using Site = perdure_ipv_site;

// A struct of the program, and its members in the order of their places.
struct TypeText {
  struct Member {
    std::string name;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  explicit TypeText(const perdure_ipv_type& type);
  std::string name;
  std::uint64_t bytes = 0;
  std::vector<Member> members;  // none: the program was compiled without debug information
};

struct SiteText {
  std::string file;
  std::string function;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t nest_line = 0;  // of the outermost loop around it; 0: none
  std::string member;           // "x of struct point"; "": of no struct, or not known

  std::string place() const;  // "heat.c:41:9", or what is known
};

class SiteTable {
 public:
  SiteTable() : sites_(1) {}

  // Gives `site` its number when it is first seen.
  SiteNumber number_of(Site& site);
  const SiteText& operator[](SiteNumber number) const { return sites_[number]; }

 private:
  std::vector<SiteText> sites_;
};

}  // namespace perdure::ipv_check
