// SPDX-License-Identifier: BSD-3-Clause
//
// Targets: traces, as files and as pipes; and what traces are imported from.
#include <cstring>

#include "base/assert.hpp"
#include "base/checksum.hpp"
#include "sim/policy.hpp"
#include "sim/run.hpp"
#include "targets.hpp"
#include "trace/frame.hpp"
#include "trace/import.hpp"
#include "trace/reader.hpp"
#include "trace/testing/random_trace.hpp"
#include "trace/trace_format.hpp"
#include "trace/writer.hpp"

namespace perdure::fuzz {
namespace {

using namespace trace;  // NOLINT(google-build-using-namespace)

// Makes the checksums of header and frames right, as far as frames can be found.
void repair(Bytes& bytes) {
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
  PERDURE_ASSERT(writer->finish({}).ok());
  return bytes;
}

struct Read {
  bool accepted = false;
  std::uint64_t accesses = 0;
};

Read read_all(std::span<const std::byte> bytes, bool seekable) {
  Read read;
  auto reader = Reader::open(memory_source(bytes, seekable));
  if (!reader.ok()) return read;
  const bool has_totals = reader.value()->totals().ok();
  for (;;) {
    auto batch = reader.value()->next();
    if (!batch.ok()) return read;
    if (batch.value().kind == Batch::Kind::end) break;
    for (const Record& record : batch.value().records) {
      PERDURE_ASSERT(record.page < reader.value()->pages());
      read.accesses += std::uint64_t{record.reads} + record.writes;
    }
  }
  PERDURE_ASSERT(has_totals || !seekable);  // who reads to the end could have had them before
  PERDURE_ASSERT(reader.value()->totals().value()->accesses() == read.accesses);
  read.accepted = true;
  return read;
}

// The first byte chooses whether the checksums are made right.
bool run_trace(std::span<const std::byte> bytes) {
  Choices choices(bytes);
  const bool raw = choices.take() % 8 == 7;
  Bytes trace(choices.rest().begin(), choices.rest().end());
  if (!raw) repair(trace);
  const Read file = read_all(trace, true), pipe = read_all(trace, false);
  PERDURE_ASSERT(file.accepted == pipe.accepted && file.accesses == pipe.accesses);
  return file.accepted;
}

std::vector<Bytes> trace_seeds() {
  std::vector<Bytes> seeds;
  for (const std::uint32_t floor_pages : {0U, 4U, 256U}) {
    const Bytes trace = small_trace(floor_pages + 1, floor_pages);
    Bytes seed(1 + trace.size());
    std::memcpy(&seed[1], trace.data(), trace.size());
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

// The first bytes choose the policy and the memory of the machine that the trace is replayed on.
bool run_simulate(std::span<const std::byte> bytes) {
  static const auto devices = sim::devices_of_preset("hosogaya2008").take();
  static const auto policies = sim::policies();
  Choices choices(bytes);
  sim::Configuration configuration;
  configuration.devices = devices;
  configuration.policy = policies[choices.take() % policies.size()]->name;
  configuration.dram_bytes = (choices.take() % 64) * std::uint64_t{4096};
  configuration.mram_bytes = (choices.take() % 64) * std::uint64_t{4096};
  Bytes trace(choices.rest().begin(), choices.rest().end());
  repair(trace);
  auto reader = Reader::open(memory_source(trace));
  return reader.ok() && sim::run(*reader.value(), configuration).ok();
}

std::vector<Bytes> simulate_seeds() {
  std::vector<Bytes> seeds;
  for (unsigned policy = 0; policy < sim::policies().size(); ++policy) {
    const Bytes trace = small_trace(policy, 0);
    Bytes seed(3 + trace.size(), std::byte{4});
    seed[0] = static_cast<std::byte>(policy);
    std::memcpy(&seed[3], trace.data(), trace.size());
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

// The first byte chooses the format, and how the trace that is made is reduced.
bool run_import(std::span<const std::byte> bytes) {
  if (bytes.empty()) return false;
  const auto format = static_cast<ImportFormat>(static_cast<unsigned>(bytes[0]) % 6);
  Header header;
  header.floor_pages = static_cast<unsigned>(bytes[0]) / 6 % 3;
  header.mode = is_filtered(format) ? FilterMode::none : FilterMode::modern;
  header.cache = {256, 64, 2};
  std::vector<std::byte> trace;
  auto writer = Writer::create(memory_sink(trace), header).take();
  auto source = memory_source(bytes.subspan(1), false);
  if (!import_accesses(format, *source, header, *writer).ok()) return false;
  PERDURE_ASSERT(writer->finish({}).ok());
  auto reader = Reader::open(memory_source(trace)).take();
  PERDURE_ASSERT(verify(*reader).ok());
  return true;
}

std::vector<Bytes> import_seeds() {
  const auto format = [](std::string_view text, char which) {
    return bytes_of(text, std::string_view(&which, 1));
  };
  return {format("==1== x\nI  04016a90,3\n L 1ffeffe7e8,8\n S 04,2\n M 0421c7cc,4\n", 0),
          format("0 1fff\n1 2000 c\n2 400\n", 1),
          format("0x1000 READ 0\n0x20 WRITE 17\n", 2),
          format("LD 0x1000\nST 0x2040\n0x1000 R\n", 3),
          format(std::string(24, '\0') + std::string(24, '\7'), 4),
          format("time,op,size,address\n0.5,2a,69632,4096\n1,R,1,0x10\n", 5),
          format(" L 10,8\n S 10,8\n L 2010,8\n", 6 + 6)};
}

}  // namespace

const Target trace_target = {"trace", run_trace, trace_seeds};
const Target simulate_target = {"simulate", run_simulate, simulate_seeds};
const Target import_target = {"import", run_import, import_seeds};

}  // namespace perdure::fuzz
