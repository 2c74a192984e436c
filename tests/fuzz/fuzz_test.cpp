// Mutates good inputs for some seconds. A mutated trace is given right checksums half of the time,
// as its frames would else be refused before anything behind the checksum is looked at.
#include <gtest/gtest.h>

#include <algorithm>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "targets.hpp"
#include "trace/frame.hpp"
#include "trace/random_trace.hpp"
#include "trace/trace_format.hpp"
#include "trace/writer.hpp"

namespace perdure::trace {
namespace {

using Bytes = std::vector<std::byte>;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void mutate(Bytes& bytes) {
    for (std::uint64_t changes = 1 + below(4); changes != 0 && !bytes.empty(); --changes) {
      const auto at = static_cast<std::ptrdiff_t>(below(bytes.size()));
      const auto count =
          static_cast<std::ptrdiff_t>(1 + below(std::min<std::size_t>(32, bytes.size())));
      const auto end = std::min<std::ptrdiff_t>(at + count, std::ssize(bytes));
      switch (below(6)) {
        case 0:
          bytes[static_cast<std::size_t>(at)] ^= std::byte{1} << below(8);
          break;
        case 1:
          bytes[static_cast<std::size_t>(at)] = static_cast<std::byte>(below(256));
          break;
        case 2:
          bytes.erase(bytes.begin() + at, bytes.begin() + end);
          break;
        case 3:
          bytes.insert(bytes.begin() + at, static_cast<std::size_t>(count), std::byte{0x30});
          break;
        case 4:
          for (auto i = at; i < end; ++i) bytes[static_cast<std::size_t>(i)] = std::byte{0xff};
          break;
        case 5:
          bytes.resize(static_cast<std::size_t>(at));
          break;
      }
    }
  }

 private:
  std::mt19937_64 random_;
};

// Makes the checksums of header and frames right, as far as frames can be found.
void mend(Bytes& bytes) {
  TraceHeaderFormat header = {};
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::size_t at = sizeof header + header.command_bytes;
  if (at > bytes.size()) return;
  const std::uint64_t seed = crc64(&header, offsetof(TraceHeaderFormat, checksum));
  header.checksum = crc64(bytes.data() + sizeof header, header.command_bytes, seed);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::uint64_t previous = header.checksum, sequence = 0;
  for (FrameHeaderFormat frame = {}; at + sizeof frame <= bytes.size();) {
    std::memcpy(&frame, bytes.data() + at, sizeof frame);
    if (frame.stored_bytes > bytes.size() - at - sizeof frame) return;
    frame.previous = previous;
    frame.sequence = sequence++;
    const std::span stored(bytes.data() + at + sizeof frame, frame.stored_bytes);
    frame.checksum = previous = frame_checksum(frame, stored);
    std::memcpy(bytes.data() + at, &frame, sizeof frame);
    at += sizeof frame + frame.stored_bytes;
    const TrailerFormat trailer = {at - sizeof frame - frame.stored_bytes, previous, trailer_magic};
    if (at + sizeof trailer != bytes.size()) continue;
    std::memcpy(bytes.data() + at, &trailer, sizeof trailer);
    return;
  }
}

Bytes small_trace(std::uint64_t seed, std::uint32_t floor_pages) {
  Bytes bytes;
  Header header;
  header.floor_pages = floor_pages;
  header.command = "./solver";
  header.created_ns = 1;
  auto writer = Writer::create(memory_sink(bytes), header).take();
  std::uint32_t count = 0;
  for (const auto& access : random_accesses(seed, 200, 20)) {
    if (count == 50) writer->begin_region("solve");
    if (count++ == 100) writer->end_region();
    writer->append(access.page, access.is_write ? 0 : 1, access.is_write ? 300 : 0, count % 3);
  }
  EXPECT_TRUE(writer->finish({}).ok());
  return bytes;
}

Bytes input_of(const std::string& text, unsigned format) {
  Bytes bytes(1 + text.size(), static_cast<std::byte>(format));
  std::memcpy(bytes.data() + 1, text.data(), text.size());
  return bytes;
}

struct Campaign {
  std::uint64_t inputs = 0;
  std::uint64_t accepted = 0;
};

template <typename Try>
Campaign mutate_for_some_seconds(const std::vector<Bytes>& good, Try try_one) {
  const std::uint64_t seed = from_environment("PERDURE_FUZZ_SEED", wall_clock_ns());
  const std::uint64_t seconds = from_environment("PERDURE_FUZZ_SECONDS", 3);
  std::printf("PERDURE_FUZZ_SEED=%ju\n", static_cast<std::uintmax_t>(seed));
  std::fflush(stdout);  // an abort would lose it
  Mutator mutator(seed);
  Campaign campaign;
  const std::uint64_t end = monotonic_ns() + seconds * 1000000000U;
  while (monotonic_ns() < end || campaign.inputs < 500) {
    Bytes bytes = good[mutator.below(good.size())];
    mutator.mutate(bytes);
    campaign.accepted += try_one(bytes, mutator) ? 1U : 0U;
    ++campaign.inputs;
  }
  std::printf("%ju inputs, %ju accepted\n", static_cast<std::uintmax_t>(campaign.inputs),
              static_cast<std::uintmax_t>(campaign.accepted));
  return campaign;
}

TEST(Fuzz, no_mutated_trace_breaks_the_reader) {
  const std::vector<Bytes> good = {small_trace(1, 0), small_trace(2, 4), small_trace(3, 256)};
  for (const Bytes& bytes : good) EXPECT_TRUE(fuzz_trace(bytes));
  const Campaign campaign = mutate_for_some_seconds(good, [](Bytes& bytes, Mutator& mutator) {
    if (mutator.below(2) == 0) mend(bytes);
    return fuzz_trace(bytes);
  });
  EXPECT_LT(campaign.accepted, campaign.inputs);
}

TEST(Fuzz, no_mutated_input_breaks_an_importer) {
  const std::vector<Bytes> good = {
      input_of("==1== x\nI  04016a90,3\n L 1ffeffe7e8,8\n S 04,2\n M 0421c7cc,4\n", 0),
      input_of("0 1fff\n1 2000 c\n2 400\n", 1),
      input_of("0x1000 READ 0\n0x20 WRITE 17\n", 2),
      input_of("LD 0x1000\nST 0x2040\n0x1000 R\n", 3),
      input_of(std::string(72, '\7'), 4),
      input_of(" L 10,8\n S 10,8\n L 2010,8\n", 5 + 5)};
  for (const Bytes& bytes : good) EXPECT_TRUE(fuzz_import(bytes));
  const Campaign campaign =
      mutate_for_some_seconds(good, [](Bytes& bytes, Mutator&) { return fuzz_import(bytes); });
  EXPECT_GT(campaign.accepted, 0U);
  EXPECT_LT(campaign.accepted, campaign.inputs);
}

}  // namespace
}  // namespace perdure::trace
