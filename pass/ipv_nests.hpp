// SPDX-License-Identifier: BSD-3-Clause
//
// Chooses the nests: for each row the largest loop around it that can be announced as a box. What
// else the loop may touch is compared with the object when the program runs (abi.R3 of
// perdure_ipv_abi.h), unless it is private by proof.
#pragma once

#include "ipv_box.hpp"

namespace perdure::ipv {

// Why a row has no nest as large as `nest`.
struct NestRefusal {
  const Row* row = nullptr;
  llvm::Loop* nest = nullptr;  // null: a memory intrinsic alone
  Refusal refusal;
};

class NestChooser {
 public:
  // `sites` are kept until after the last use of what is found.
  NestChooser(Analyses& analyses, Finder& finder, const std::vector<Site>& sites)
      : analyses_(analyses), finder_(finder), sites_(sites), shaper_(analyses) {}
  void run();
  std::vector<Box> boxes;
  std::vector<NestRefusal> refused;

 private:
  void choose(const Site& site, const Row& row);
  bool try_nest(const Site& site, const Row& row, llvm::Loop* nest);
  std::optional<Refusal> prove(Box& box);
  std::optional<Refusal> prove_access(Box& box, const Access& access);

  Analyses& analyses_;
  Finder& finder_;
  const std::vector<Site>& sites_;
  BoxShaper shaper_;
};

}  // namespace perdure::ipv
