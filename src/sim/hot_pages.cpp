// SPDX-License-Identifier: BSD-3-Clause
#include "sim/hot_pages.hpp"

#include <algorithm>
#include <numeric>

namespace perdure::sim {
namespace {

double gain_of(const trace::PageCounts& page, Rank rank, const Devices* devices) {
  const auto reads = static_cast<double>(page.reads), writes = static_cast<double>(page.writes);
  if (rank == Rank::count) return reads + writes;
  const MemoryModel &dram = devices->dram, &mram = devices->mram;
  return reads * (*dram.read_nj_per_line - *mram.read_nj_per_line) +
         writes * (*dram.write_nj_per_line - *mram.write_nj_per_line);
}

}  // namespace

PolicyOption rank_option() {
  return {.name = "rank",
          .default_value = "count",
          .description = "hottest by accesses, or by the energy that MRAM saves",
          .choices = {"count", "energy"}};
}

Rank rank_of(const PolicySetup& setup) {
  return setup.options.is("rank", "count") ? Rank::count : Rank::energy;
}

std::vector<bool> hot_pages(const PolicySetup& setup) {
  return hot_pages(setup.counts, setup.memory.frames(Place::mram), rank_of(setup), setup.devices);
}

Status check_rank(Rank rank, const Devices& devices) {
  if (rank == Rank::count) return Status::success();
  for (const MemoryModel* model : {&devices.dram, &devices.mram}) {
    if (model->read_nj_per_line.has_value() && model->write_nj_per_line.has_value()) continue;
    return Status(Code::invalid_argument, "pages can't be ranked by energy: that of ", model->name,
                  " is not known; rank them by count");
  }
  return Status::success();
}

std::vector<bool> hot_pages(std::span<const trace::PageCounts> counts, std::uint64_t frames,
                            Rank rank, const Devices* devices) {
  std::vector<std::uint32_t> order;
  std::vector<double> gains(counts.size());
  for (std::uint32_t page = 0; page < counts.size(); ++page) {
    gains[page] = gain_of(counts[page], rank, devices);
    if (counts[page].reads + counts[page].writes != 0) order.push_back(page);
  }
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return gains[a] != gains[b] ? gains[a] > gains[b] : a < b;
  };
  if (frames < order.size()) {
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(frames);
    std::nth_element(order.begin(), middle, order.end(), before);
    order.resize(frames);
  }
  std::vector<bool> hot(counts.size());
  for (const std::uint32_t page : order) hot[page] = true;
  return hot;
}

}  // namespace perdure::sim
