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

SiteNumber SiteTable::number_of(Site& site) {
  if (site.number != 0) return site.number;
  SiteText text;
  if (site.file != nullptr) text.file = site.file;
  if (site.function != nullptr) text.function = site.function;
  text.line = site.line;
  text.column = site.column;
  text.nest_line = site.nest_line;
  sites_.push_back(std::move(text));
  site.number = static_cast<SiteNumber>(sites_.size() - 1);
  return site.number;
}

}  // namespace perdure::ipv_check
