// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of freshly written memory to an uncached destination: our copy, the same with the
// checksums that new arrays have here (fused) and with each kind, libpmem's and memcpy, in turn
// within each repetition, so that a disturbance meets all of them.
#include <algorithm>
#include <cstring>
#include <map>

#include "persist.hpp"
#include "pmem/parallel.hpp"

namespace perdure::bench {
namespace {

constexpr std::size_t block_bytes = std::size_t{64} << 10U;
// The sizes at which the claims against memcpy are made.
constexpr std::size_t claimed_bytes = std::size_t{64} << 20U;

constexpr Verbs plain_copy = {
    [](void* to, const void* from, std::size_t count) { std::memcpy(to, from, count); },
    [](const void*, std::size_t) {}, [] {}};

struct Contender {
  std::string name;
  std::function<Status(std::size_t count)> copy;
};

// The nanoseconds of every repetition, per contender.
using Times = std::map<std::string, std::vector<double>>;

// One thread count: a device and a writer per contender, on the same memory.
class CopyField {
 public:
  CopyField(Device& memory, unsigned threads, const std::vector<std::byte>& source)
      : source_(source), sums_(source.size() / block_bytes + 1) {
    add("copy", memory, threads, DataChecksum::none);
    add("fused", memory, threads, chosen_data_checksum().value());
    add("fused_crc64", memory, threads, DataChecksum::crc64);
    add("fused_xxh3", memory, threads, DataChecksum::xxh3);
    add_verbs("memcpy", memory, threads, plain_copy);
    if (libpmem_verbs().copy != nullptr) add_verbs("libpmem", memory, threads, libpmem_verbs());
  }

  const std::vector<Contender>& contenders() const { return contenders_; }

 private:
  void add_verbs(const std::string& name, const Device& memory, unsigned threads,
                 const Verbs& verbs) {
    devices_.push_back(device_with_verbs(memory, verbs));
    add(name, *devices_.back(), threads, DataChecksum::none);
  }

  void add(const std::string& name, Device& device, unsigned threads, DataChecksum checksums) {
    writers_.push_back(std::make_unique<ParallelWriter>(device, threads));
    ParallelWriter& writer = *writers_.back();
    contenders_.push_back({name, [this, &writer, &device, checksums](std::size_t count) {
                             PERDURE_TRY(copy_with(writer, count, checksums));
                             return device.fence();
                           }});
  }

  Status copy_with(ParallelWriter& writer, std::size_t count, DataChecksum checksums) {
    if (checksums == DataChecksum::none) return writer.copy(0, source_.data(), count);
    return writer.copy_with_checksums(0, source_.data(), count,
                                      {checksums, block_bytes, sums_.data()});
  }

  const std::vector<std::byte>& source_;
  std::vector<std::uint64_t> sums_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<ParallelWriter>> writers_;
  std::vector<Contender> contenders_;
};

int repetitions_of(std::size_t size, bool quick) {
  const std::size_t budget = (quick ? std::size_t{1} : std::size_t{6}) << 30U;
  const std::size_t fitting = budget / size;
  return static_cast<int>(std::min<std::size_t>(std::max<std::size_t>(fitting, 7), 201));
}

Result<Times> race(const CopyField& field, Device& memory, std::vector<std::byte>& source,
                   std::size_t size, int repetitions) {
  Times times;
  const std::size_t count = field.contenders().size();
  // The first round only warms up.
  for (int round = -1; round < repetitions; ++round) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t shift = static_cast<std::size_t>(round) + 1;
      const Contender& contender = field.contenders()[(turn + shift) % count];
      std::memset(source.data(), round, size);
      evict(memory.base(), size);
      PERDURE_TRY_ASSIGN(const double ns, nanoseconds_of([&] { return contender.copy(size); }));
      if (round >= 0) times[contender.name].push_back(ns);
    }
  }
  return times;
}

std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> paired;
  paired.reserve(theirs.size());
  for (std::size_t i = 0; i < theirs.size(); ++i) paired.push_back(ours[i] / theirs[i]);
  return paired;
}

void report_rates(const Times& times, std::size_t size, unsigned threads) {
  for (const auto& [name, ns] : times) {
    std::vector<double> rates;
    for (const double one : ns) rates.push_back(static_cast<double>(size) / one);
    print_fact(of_samples(fact_of(name, "bandwidth", "GB/s", size, threads), rates));
  }
}

void report_ratios(const Times& times, std::size_t size, unsigned threads) {
  Fact to_libpmem = fact_of("copy", "ratio_to_libpmem", "1", size, threads);
  if (times.contains("libpmem")) {
    to_libpmem = of_samples(to_libpmem, ratios(times.at("copy"), times.at("libpmem")));
  } else {
    to_libpmem.more.emplace_back("absent", "libpmem was not found when this was built");
  }
  print_fact(at_most(1.05, to_libpmem));
  for (const auto& [name, target] : {std::pair{"copy", 0.8}, std::pair{"fused", 1.2},
                                     std::pair{"fused_crc64", 0.0}, std::pair{"fused_xxh3", 0.0}}) {
    const Fact fact = of_samples(fact_of(name, "ratio_to_memcpy", "1", size, threads),
                                 ratios(times.at(name), times.at("memcpy")));
    print_fact(size == claimed_bytes && target != 0 ? at_most(target, fact) : fact);
  }
}

}  // namespace

Status measure_copies(const PersistOptions& options) {
  PERDURE_TRY_ASSIGN(auto memory, open_scratch(options, options.largest_bytes));
  std::vector<std::byte> source(options.largest_bytes);
  for (const unsigned threads : options.threads) {
    const CopyField field(*memory, threads, source);
    for (std::size_t size = std::size_t{64} << 10U; size <= options.largest_bytes; size *= 4) {
      const int repetitions = repetitions_of(size, options.quick);
      PERDURE_TRY_ASSIGN(const Times times, race(field, *memory, source, size, repetitions));
      report_ratios(times, size, threads);
      report_rates(times, size, threads);
    }
  }
  return Status::success();
}

}  // namespace perdure::bench
