// SPDX-License-Identifier: BSD-3-Clause
//
// Window state: the shares lie in a persistent window; copy, twin and log. The program makes the
// standard calls of MPI and says in the info of the window how it is protected.
//
//   copy, log   the iterate lies in the window, and the next one is made beside it, because all
//               shares of this one are read meanwhile; advance() copies it into the window.
//   twin        the double buffering of the paper: the next iterate is made in the working half
//               from the committed one, the ghosts are put into the working half, a commit swaps
//               them and copies nothing. If several iterations go by between two commits, the later
//               ones are made beside the window too: the committed half must not be written.
#pragma once

#include "perdure/perdure_mpi.h"
#include "state.hpp"

namespace pagerank {

class WindowState final : public State {
 public:
  WindowState(const Graph& graph, const Options& options);

  std::uint64_t restore() override;
  const double* current() const override { return in_place_ ? working_ : consistent_; }
  double* next() override;
  void advance() override;
  bool commit_due() override;
  void commit() override;
  std::uint64_t committed_bytes() const override;
  std::uint64_t model_ns() const override;

 private:
  void find_halves();

  bool twin_;
  std::uint64_t problem_;
  std::uint64_t problem_of_pool_;
  bool in_place_ = true;  // the current iterate is where the next commit takes it from
  Window window_;
  double* working_ = nullptr;
  double* consistent_ = nullptr;  // twin: the half of the last commit
  std::vector<double> beside_;
  perdure_pool* pool_ = nullptr;
};

}  // namespace pagerank
