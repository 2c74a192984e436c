// SPDX-License-Identifier: BSD-3-Clause
//
// Pair object: the two arrays of a double-buffered loop (Jacobi, lattice Boltzmann, waves). An
// iteration reads one and overwrites the other, so the program itself keeps the version before: the
// pair is one object of the pool, whose contents are in the array that was overwritten last. That
// one lies in the copy that its version names; the other array is shown in a copy that no version
// needs. So nothing is copied; what was overwritten is flushed, beside the next iteration where
// there is a thread for it.
//
// Contract of the program
//   ipv.R1  Between two persistence points it overwrites one of the two arrays, and at the next
//       two the other one.
//   ipv.R2  An element that one iteration stores to every later one stores to, before it is read in
//       that array. What no iteration stores to (walls, padding) is equal in both arrays.
// ipv.R1 is guarded: the array of the version can't be stored to, and the program ends with a
//     sentence
// if it tries. Of ipv.R2, spot checks find breaches: some words that must be overwritten are
// poisoned, and a word that still is poisoned at the persistence point is an error of it, and of
// every later one. With PERDURE_IPV=verify=on all such words are.
//
// Invariants
//   ipv.T1  alive_copy_ holds the contents of the array arrays_[alive_], complete since the last
//       persistence point. Nobody stores to it while a version names it, is about to, or the
//       program may read it.
//   ipv.T2  The other array is shown in written_copy_, which no version names.
//   ipv.T3  In all copies that no version names, what no iteration has stored to is as in
//       alive_copy_: start() fills them. What follows an array in its last page stays its own.
//   ipv.T4  A pair that gets another size starts again, in an extent of which no version names a
//       copy. What the version under way holds of it was flushed where it lay.
//
// Threads: as object.hpp; stores to an array may come from any.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "ipv/address_views.hpp"
#include "ipv/object.hpp"
#include "ipv/poison.hpp"

namespace perdure {

class PairObject final : public InPlaceObject {
 public:
  // Both arrays lie in whole pages of their own. `alive` is the pool's scalar that says which array
  // a version's contents are in; it outlives the pool.
  PairObject(ObjectSurroundings& surroundings, std::string name, std::byte* a, std::byte* b,
             std::uint64_t bytes, std::uint64_t& alive);

  std::byte* alive() const { return arrays_[alive_].address; }
  bool overlaps(std::uintptr_t begin, std::uintptr_t end) const override;
  Beginnings beginnings() const override;

  Status start() override;
  void leave() override;
  Status end(Going how) override;
  Status resize(const ObjectMemory& to, const ResizeInPool& in_pool) override;
  void touch(ByteRange /*range*/) override {}
  bool shows(std::uintptr_t address) const override {
    return reaches_into(address / view_page_bytes * view_page_bytes, address + 1);
  }
  bool fault(std::uintptr_t address) override;
  Status pin() override;
  Status unpin() override;
  Status hand_over() override;
  void pass() override;
  const std::byte* contents() const override { return at(alive_copy_); }
  bool changed() const override { return in_version_; }
  Result<std::uint64_t> save_contents() override;
  bool is_saved_beside() override;
  void save_beside() override;
  Status finish_save() override;
  void end_version(CommitOutcome outcome) override;
  Tier tier() const override { return PERDURE_IPV_STREAM; }

 private:
  struct Array {
    std::byte* address;
    std::unique_ptr<AddressViews> views;
    std::vector<unsigned> places;  // by copy
  };
  enum class Flush : std::uint8_t { done, needed, queued };

  std::byte* at(std::uint32_t copy) const {
    return surroundings_.device.base() + array_->copy_offset(copy);
  }
  Status make_views(Array& array);
  void take_contents();
  void take_rest(const std::byte* from, std::uint32_t copy);
  std::uint32_t free_copy() const;
  Status check_overwritten();
  void swap_roles();
  bool show(Array& array, std::uint32_t copy, ViewAccess access);
  Status flush_saved();

  std::array<Array, 2> arrays_;
  std::uint64_t& alive_;
  std::uint32_t alive_copy_ = 0;
  std::uint32_t written_copy_ = 0;
  Poison poison_;  // in written_copy_
  Status broken_;  // ipv.R2
  bool started_ = false;
  bool unsaved_ = false;  // no committed version holds what is alive
  bool anew_ = false;     // nor does the one under way: it began before resize()
  bool in_version_ = false;
  std::atomic<Flush> flush_{Flush::done};  // of alive_copy_, for the version under way
};

}  // namespace perdure
