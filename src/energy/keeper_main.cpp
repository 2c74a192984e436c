// SPDX-License-Identifier: BSD-3-Clause
//
// perdure-keeper: restores the clock when the process that capped it is gone (keeper.hpp).
#include "energy/keeper.hpp"

int main(int argc, char** argv) {
  return perdure::energy::run_keeper(argc, argv);
}
