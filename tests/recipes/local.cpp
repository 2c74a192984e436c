// SPDX-License-Identifier: BSD-3-Clause
//
// Local codes: the sum of the first half of a stripe's columns, and that of the others. One member
// may be lost, whichever it is, and many pairs; what is lost is computed of half of the columns.
#include "levels/coding.hpp"

namespace perdure {
namespace {

class Local final : public Coding {
 public:
  std::uint32_t number() const override { return 77; }
  std::optional<Scheme> parse(std::string_view name) const override {
    if (!name.starts_with("local:")) return std::nullopt;
    const auto columns = count_in(name.substr(6));
    if (!columns || *columns < 2 || *columns + 2 > group_size_max) return std::nullopt;
    return Scheme{*columns + 2, 2, number()};
  }
  std::string name(const Scheme& scheme) const override {
    return "local:" + std::to_string(scheme.group_size - scheme.rows);
  }
  std::string names() const override { return "local:K for groups of K + 2 in two halves"; }
  std::vector<std::string> examples() const override { return {"local:2", "local:4"}; }
  std::uint32_t losses(std::uint32_t, std::uint32_t) const override { return 1; }
  unsigned char coefficient(std::uint32_t columns, std::uint32_t, std::uint32_t row,
                            std::uint32_t column) const override {
    return (column < columns / 2) == (row == 0) ? 1 : 0;
  }
};

}  // namespace

const Coding& local_coding() {
  static const Local& coding = *new Local;  // levels are used until the process ends
  return coding;
}

}  // namespace perdure
