// SPDX-License-Identifier: BSD-3-Clause
//
// IPV builds: the modules of this process in which perdure-clang --ipv announces boxes, as their
// notes say (perdure_ipv_abi.h), and whether a build of the same source was found right by
// `perdure ipv check`.
//
// Threads: any.
#pragma once

#include <string>
#include <vector>

namespace perdure {

struct IpvBuild {
  std::string hash;
  bool checked = false;
  std::string source;  // as the compiler was given it
};

void note_ipv_build(IpvBuild build);

std::vector<IpvBuild> ipv_builds();

}  // namespace perdure
