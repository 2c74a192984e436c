// SPDX-License-Identifier: BSD-3-Clause
#include "ledger.hpp"

#include <algorithm>
#include <iterator>

namespace perdure {
namespace {

using Set = std::set<std::uint64_t>;

Set both(const Set& one, const Set& other) {
  Set result;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                        std::inserter(result, result.end()));
  return result;
}

}  // namespace

// Nothing is under way.
void Ledger::settle() {
  std::erase_if(kept_, [this](std::uint64_t v) { return v + slots_ <= next_; });
  now_.heads = {head_};
  now_.must = now_.may = kept_;
}

void Ledger::begin_version(const Contents& contents) {
  now_.held[next_] = contents;
  now_.heads = {head_, next_};
  now_.may.insert(next_);
  // The slot of the version after it is opened at its end.
  std::erase_if(now_.must, [this](std::uint64_t v) { return v + slots_ <= next_ + 1; });
}

void Ledger::end_commit() {
  pending_.reset();
  kept_.insert(next_);
  head_ = next_++;
  settle();
}

void Ledger::begin_staged() {
  if (pending_) begin_version(*pending_);
}

void Ledger::end_staged(const Contents& contents) {
  if (pending_) end_commit();
  pending_ = contents;
}

void Ledger::end_restore(std::uint64_t version) {
  head_ = version;
  settle();
}

void Ledger::end_delete(std::uint64_t version) {
  kept_.erase(version);
  settle();
}

Knowledge joined(const Knowledge& one, const Knowledge& other) {
  Knowledge result = one;
  result.heads = both(one.heads, other.heads);
  result.may = both(one.may, other.may);
  result.must.insert(other.must.begin(), other.must.end());
  return result;
}

}  // namespace perdure
