// SPDX-License-Identifier: BSD-3-Clause
//
// Bound scalars: the variables of the program that are scalars of the next version. A version holds
// what they were when it was begun; a restart stores to them.
//
// Threads: as the pool.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "pool/catalogue.hpp"

namespace perdure {

class BoundScalars {
 public:
  // The next version, which outlives this.
  explicit BoundScalars(Catalogue& next) : next_(next) {}

  // Whether the next version has the scalar only since then. With `load` one that it had is stored
  // to `address`.
  Result<bool> bind(const std::string& name, ScalarType type, void* address, std::size_t bytes,
                    bool load);
  // The last one, which the next version had only since it was bound.
  void undo_bind();

  // Scalars that the next version's parent lacks stay as they are.
  void load() const;
  void save() const;
  // The value of scalar "iteration" in `catalogue`, made of the next version; or no_iteration.
  std::uint64_t iteration_of(const Catalogue& catalogue) const;

  bool binds(const std::string& name) const;
  // What is bound can take the contents of `target`.
  Status check_fits(const Catalogue& target) const;
  // The next version becomes `target`, which gets what is bound and it lacks.
  void adopt(Catalogue& target);

 private:
  struct BoundScalar {
    void* address;
    std::size_t entry;  // in next_.scalars
    bool known;         // some version holds it
  };

  Catalogue& next_;
  std::vector<BoundScalar> bound_;
};

}  // namespace perdure
