// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/sites.hpp"

namespace perdure::ipv_check {

std::string SiteText::place() const {
  if (line != 0) {
    return file + ":" + std::to_string(line) +
           (column != 0 ? ":" + std::to_string(column) : std::string());
  }
  if (!function.empty()) return function + "() in " + (file.empty() ? "unknown source" : file);
  return file.empty() ? "an unknown place" : file;
}

TypeText::TypeText(const perdure_ipv_type& type)
    : name(type.name == nullptr ? "" : type.name), bytes(type.bytes) {
  for (std::uint64_t i = 0; i < type.count; ++i) {
    const perdure_ipv_member& member = type.members[i];
    members.push_back({member.name, member.offset, member.bytes});
  }
}

namespace {

std::string member_of(const Site& site) {
  if (site.type == nullptr || site.offset < 0) return "";
  const TypeText type(*site.type);
  const auto offset = static_cast<std::uint64_t>(site.offset);
  for (const TypeText::Member& member : type.members) {
    if (offset - member.offset < member.bytes) return member.name + " of struct " + type.name;
  }
  return "";
}

}  // namespace

SiteNumber SiteTable::number_of(Site& site) {
  if (site.number != 0) return site.number;
  SiteText text;
  if (site.file != nullptr) text.file = site.file;
  if (site.function != nullptr) text.function = site.function;
  text.line = site.line;
  text.column = site.column;
  text.nest_line = site.nest_line;
  text.member = member_of(site);
  sites_.push_back(std::move(text));
  site.number = static_cast<SiteNumber>(sites_.size() - 1);
  return site.number;
}

}  // namespace perdure::ipv_check
