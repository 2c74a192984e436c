// SPDX-License-Identifier: BSD-3-Clause
//
// Reed-Solomon codes with a Cauchy matrix, every square part of which can be inverted (J. Blömer et
// al., An XOR-Based Erasure-Resilient Coding Scheme, ICSI TR-95-048, 1995). With one row it is XOR,
// and with one column besides a partner's copy.
#include "levels/coding.hpp"

namespace perdure {
namespace {

class ReedSolomon final : public Coding {
 public:
  std::uint32_t number() const override { return 0; }
  std::optional<Scheme> parse(std::string_view name) const override {
    if (name == "partner") return Scheme{2, 1};
    if (name == "xor") return Scheme{8, 1};
    if (name.starts_with("xor:")) {
      const auto size = count_in(name.substr(4));
      if (size && *size >= 2) return Scheme{*size, 1};
    }
    const std::size_t plus = name.find('+');
    if (name.starts_with("rs:") && plus != std::string_view::npos) {
      const auto kept = count_in(name.substr(3, plus - 3));
      const auto rows = count_in(name.substr(plus + 1));
      if (kept && rows && *kept + *rows <= group_size_max) return Scheme{*kept + *rows, *rows};
    }
    return std::nullopt;
  }
  std::string name(const Scheme& scheme) const override {
    if (scheme.group_size == 2 && scheme.rows == 1) return "partner";
    if (scheme.rows == 1) return "xor:" + std::to_string(scheme.group_size);
    return "rs:" + std::to_string(scheme.group_size - scheme.rows) + "+" +
           std::to_string(scheme.rows);
  }
  std::string names() const override {
    return "partner, xor, xor:G for groups of G ranks, or rs:K+M for groups of K + M of which M "
           "may be lost";
  }
  std::vector<std::string> examples() const override {
    return {"partner", "xor:3", "xor:5", "rs:2+2", "rs:3+2", "rs:1+3", "rs:3+3"};
  }

  std::uint32_t losses(std::uint32_t, std::uint32_t rows) const override { return rows; }
  unsigned char coefficient(std::uint32_t columns, std::uint32_t rows, std::uint32_t row,
                            std::uint32_t column) const override {
    return rows == 1 ? 1 : field_inverse(static_cast<unsigned char>((columns + row) ^ column));
  }
  bool is_any_enough() const override { return true; }
};

}  // namespace

const Coding& reed_solomon_coding() {
  static const ReedSolomon& coding = *new ReedSolomon;  // levels are used until the process ends
  return coding;
}

}  // namespace perdure
