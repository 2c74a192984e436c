// SPDX-License-Identifier: BSD-3-Clause
#include "pool/bound_scalars.hpp"

#include <algorithm>
#include <cstring>

#include "pool/run_page.hpp"

namespace perdure {

namespace {

Status other_type(const ScalarEntry& held, ScalarType type, const std::string& where) {
  return Status(Code::shape_mismatch, "scalar ", quoted(held.name), " is ", type_name(held.type),
                " in ", where, ", not ", type_name(type), "; give it another name");
}

}  // namespace

Result<bool> BoundScalars::bind(const std::string& name, ScalarType type, void* address,
                                std::size_t bytes, bool load) {
  PERDURE_TRY(check_name(name));
  if (address == nullptr || bytes == 0 || bytes > scalar_bytes_max) {
    return Status(Code::invalid_argument, "scalar ", quoted(name), " needs an address and 1 to ",
                  scalar_bytes_max, " bytes, not ", bytes);
  }
  if (bytes % element_bytes(type) != 0) {
    return Status(Code::invalid_argument, "scalar ", quoted(name), " has ", bytes, " bytes, and ",
                  type_name(type), " has ", element_bytes(type), "; give its own type, or 0");
  }
  auto& entries = next_.scalars;
  const auto found = std::ranges::find(entries, name, &ScalarEntry::name);
  const auto index = static_cast<std::size_t>(found - entries.begin());
  if (found == entries.end()) {
    entries.push_back({name, std::vector<std::byte>(bytes), type});
    bound_.push_back({address, index, false});
    return true;
  }
  if (std::ranges::find(bound_, index, &BoundScalar::entry) != bound_.end()) {
    return Status(Code::invalid_argument, "scalar ", quoted(name), " is already bound");
  }
  if (found->bytes.size() != bytes) {
    return Status(Code::shape_mismatch, "scalar ", quoted(name), " has ", found->bytes.size(),
                  " bytes in the pool, not ", bytes);
  }
  if (!is_alike(found->type, type)) return other_type(*found, type, "the pool");
  if (type != ScalarType::none) found->type = type;
  if (load) std::memcpy(address, found->bytes.data(), bytes);
  bound_.push_back({address, index, true});
  return false;
}

void BoundScalars::undo_bind() {
  bound_.pop_back();
  next_.scalars.pop_back();
}

void BoundScalars::load() const {
  for (const BoundScalar& scalar : bound_) {
    if (!scalar.known) continue;
    const ScalarEntry& entry = next_.scalars[scalar.entry];
    std::memcpy(scalar.address, entry.bytes.data(), entry.bytes.size());
  }
}

void BoundScalars::save() const {
  for (const BoundScalar& scalar : bound_) {
    std::vector<std::byte>& bytes = next_.scalars[scalar.entry].bytes;
    std::memcpy(bytes.data(), scalar.address, bytes.size());
  }
}

std::uint64_t BoundScalars::iteration_of(const Catalogue& catalogue) const {
  for (const BoundScalar& scalar : bound_) {
    if (scalar.entry >= catalogue.scalars.size()) continue;  // bound since
    const ScalarEntry& entry = catalogue.scalars[scalar.entry];
    if (entry.name != "iteration") continue;
    std::uint64_t value = 0;  // little-endian: 4 bytes widen by themselves
    if (entry.bytes.size() > sizeof value) break;
    std::memcpy(&value, entry.bytes.data(), entry.bytes.size());
    return value;
  }
  return no_iteration;
}

bool BoundScalars::binds(const std::string& name) const {
  return std::ranges::any_of(
      bound_, [&](const BoundScalar& scalar) { return next_.scalars[scalar.entry].name == name; });
}

Status BoundScalars::check_fits(const Catalogue& target) const {
  for (const BoundScalar& scalar : bound_) {
    const ScalarEntry& mine = next_.scalars[scalar.entry];
    const ScalarEntry* entry = target.find_scalar(mine.name);
    if (entry == nullptr) continue;
    if (!is_alike(entry->type, mine.type)) {
      return other_type(*entry, mine.type, "version " + std::to_string(target.version));
    }
    if (entry->bytes.size() == mine.bytes.size()) continue;
    return Status(Code::shape_mismatch, "scalar ", quoted(mine.name), " has ", entry->bytes.size(),
                  " bytes in version ", target.version, ", not ", mine.bytes.size());
  }
  return Status::success();
}

void BoundScalars::adopt(Catalogue& target) {
  for (BoundScalar& scalar : bound_) {
    const ScalarEntry& mine = next_.scalars[scalar.entry];
    const ScalarEntry* entry = target.find_scalar(mine.name);
    scalar.known = entry != nullptr;
    if (!scalar.known) target.scalars.push_back(mine);
    scalar.entry = scalar.known ? static_cast<std::size_t>(entry - target.scalars.data())
                                : target.scalars.size() - 1;
    if (mine.type != ScalarType::none) target.scalars[scalar.entry].type = mine.type;
  }
}

}  // namespace perdure
