// SPDX-License-Identifier: BSD-3-Clause
//
// Targets: the part of a cached file and its undo log, as recovery finds them; and what another
// node may ask of a part, in pieces.
//
// The file is mostly zeros, so an input has only what may differ: the numbers of the header and of
// the state, and the first journal slots, blocks and places of the undo log.
#include <algorithm>
#include <cstring>

#include "base/checksum.hpp"
#include "cache/cache_part.hpp"
#include "cache/part_service.hpp"
#include "memory_device.hpp"
#include "scratch_files.hpp"
#include "targets.hpp"

namespace perdure::fuzz {
namespace {

constexpr unsigned raw = 1, other_boot = 2, without_undo = 4;
constexpr std::size_t header_bytes = 144, state_bytes = 640, journal_begin = 128;
constexpr std::size_t journals = 3, blocks = 6, places = 8;

struct Compact {
  unsigned char header[header_bytes];
  std::uint64_t pool_job[2];
  unsigned char state[state_bytes];
  unsigned char journal[journals][journal_begin];
  BlockFormat table[blocks];
  UndoFormat undo[places];
};

std::uint64_t align_to(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Where cache_part.cpp expects things to be.
void repair_offsets(PartHeaderFormat& header) {
  const std::uint64_t bounded = std::uint64_t{1} << 40;
  const std::uint64_t block = std::clamp<std::uint64_t>(header.block_bytes, 4096, 1 << 20);
  header.magic = part_magic;
  header.state_offset = 12288;
  header.journal_offset = 57344;
  header.table_offset =
      align_to(57344 + std::min(header.journal_entries, bounded) * sizeof(JournalFormat), 4096);
  header.block_offset =
      align_to(header.table_offset + std::min(header.blocks, bounded) * sizeof(BlockFormat), block);
}

void repair_journal(JournalFormat& slot) {
  if (slot.checksum == 0 || slot.length > journal_bytes) return;
  slot.checksum = crc64(slot.bytes, slot.length, crc64(&slot.offset, 8, slot.length)) | 1;
}

template <typename Format>
void put(Bytes& image, std::uint64_t at, const Format& format) {
  if (at > image.size() || sizeof format > image.size() - at) return;
  std::memcpy(&image[at], &format, sizeof format);
}

PartHeaderFormat header_of(const Compact& compact, unsigned how) {
  PartHeaderFormat header{};
  std::memcpy(&header, compact.header, sizeof compact.header);
  std::memcpy(header.path, "/cached", 7);
  std::memcpy(header.pool_job, compact.pool_job, sizeof header.pool_job);
  if ((how & raw) != 0) return header;
  repair_offsets(header);
  header.checksum = crc64(&header, offsetof(PartHeaderFormat, checksum));
  return header;
}

Bytes image_of(const Compact& compact, const PartHeaderFormat& header, unsigned how) {
  const bool small = header.blocks < 4096 && header.block_bytes < 65536;
  const std::uint64_t end = header.block_offset + (small ? header.blocks * header.block_bytes : 0);
  Bytes image(std::min(end, MemoryDevice::bytes_max));
  put(image, 0, header);
  put(image, header.state_offset, compact.state);
  for (std::size_t i = 0; i < std::min<std::uint64_t>(journals, header.journal_entries); ++i) {
    JournalFormat slot{};
    std::memcpy(&slot, compact.journal[i], sizeof compact.journal[i]);
    if ((how & raw) == 0) repair_journal(slot);
    put(image, header.journal_offset + i * sizeof slot, slot);
  }
  for (std::size_t i = 0; i < std::min<std::uint64_t>(blocks, header.blocks); ++i) {
    put(image, header.table_offset + i * sizeof(BlockFormat), compact.table[i]);
  }
  return image;
}

// The places of the first grains of block 0.
std::unique_ptr<UndoLog> undo_of(const Compact& compact, const UndoGeometry& geometry) {
  if (geometry.file_bytes() > MemoryDevice::bytes_max) return nullptr;
  Bytes image(geometry.file_bytes());
  for (std::size_t i = 0; i < places && geometry.blocks != 0; ++i) {
    UndoFormat place = compact.undo[i];
    const std::uint64_t at = geometry.bytes_offset() + i * geometry.grain_bytes();
    if (place.checksum != 0) {
      place.checksum =
          crc64(image.data() + at, geometry.grain_bytes(), crc64(&place.version, 8)) | 1;
    }
    put(image, i * sizeof place, place);
  }
  return std::make_unique<UndoLog>(std::make_unique<MemoryDevice>(image), geometry);
}

const BackingFile& backing_file() {
  static const ScratchFiles scratch;
  static const BackingFile backing = [] {
    scratch.write("cached", {});
    return BackingFile::open(scratch.path_of("cached"), BackingFile::Access::read_write).take();
  }();
  return backing;
}

bool run_part(std::span<const std::byte> bytes) {
  Choices choices(bytes);
  const unsigned how = choices.take(), version = choices.take();
  Compact compact{};
  std::memcpy(&compact, choices.rest().data(), std::min(sizeof compact, choices.rest().size()));
  const Bytes image = image_of(compact, header_of(compact, how), how);
  auto attached = CachePart::attach(std::make_unique<MemoryDevice>(image));
  if (!attached.ok()) return false;
  CachePart& part = *attached.value();
  const BackingFile& backing = backing_file();
  part.set_backing(&backing);
  const bool same_boot = (how & other_boot) == 0;
  (void)part.unsaved_bytes(same_boot);
  (void)part.through_bytes();
  if (part.with_pool() && (how & without_undo) == 0) {
    auto undo = undo_of(compact, part.undo_geometry());
    if (undo == nullptr) return false;
    part.set_undo_log(std::move(undo));
    if (same_boot) (void)part.contradicts_file();
    if (!part.roll_back({{1, 0}, version, 0, 0}).ok()) return false;
  }
  (void)part.changes().evidence();
  if (same_boot) (void)part.contradicts_file();
  const bool recovered = part.recover(same_boot).ok();
  PERDURE_ASSERT(backing.set_size(0).ok());
  return recovered;
}

Compact sample(bool with_pool) {
  Compact compact{};
  PartHeaderFormat header{};
  header.format_version = part_format_version;
  header.nodes = 1;
  header.block_bytes = 1024;
  header.blocks = blocks;
  header.journal_entries = journals;
  std::memcpy(compact.header, &header, sizeof compact.header);
  compact.pool_job[0] = with_pool ? 1 : 0;
  PartStateFormat state{};
  state.size_bytes = state.visible_bytes = 5000;
  state.base_version = 2 << owner_bits;
  state.sized_versions[0] = 2;
  state.sizes[0] = 4000;
  state.touched_blocks = 4;
  std::memcpy(compact.state, &state, sizeof compact.state);
  JournalFormat slot{};
  slot.length = 40;
  slot.offset = 1000;
  std::memcpy(compact.journal[0], &slot, sizeof compact.journal[0]);
  slot.checksum = 1;
  std::memcpy(compact.journal[1], &slot, sizeof compact.journal[1]);
  for (std::size_t block = 0; block < 4; ++block) {
    // The last of them was being evicted, or brought in.
    compact.table[block].state = held_by(BlockState::present, block == 2 ? 7 : 0);
    if (block == 3) compact.table[block].state = held_by(BlockState::through, 9);
    compact.table[block].dirty[block % 2] = 0xff00ff;
    compact.table[block].kept[0] = block;
    compact.table[block].undo_or_uses = with_pool ? 1 : 0;
  }
  for (std::size_t i = 0; i < places; ++i) compact.undo[i] = {2 << owner_bits, i % 2, i, {}};
  return compact;
}

std::vector<Bytes> part_seeds() {
  std::vector<Bytes> seeds;
  for (const bool with_pool : {false, true}) {
    for (const unsigned how : {0U, other_boot}) {
      const Compact compact = sample(with_pool);
      Bytes seed(2 + sizeof compact);
      seed[0] = static_cast<std::byte>(how);
      seed[1] = std::byte{1};
      std::memcpy(seed.data() + 2, &compact, sizeof compact);
      seeds.push_back(std::move(seed));
    }
  }
  return seeds;
}

constexpr std::size_t runs_asked_max = 16, bytes_asked_max = 4096;

// A part of one node of two, with a few small blocks, as it was made.
std::unique_ptr<CachePart> new_part(const Layout& layout) {
  PartIdentity identity;
  identity.path = "/cached";
  identity.node = 1;
  identity.layout = layout;
  const PartGeometry geometry{.blocks = blocks, .journal_entries = 1};
  auto device = std::make_unique<MemoryDevice>(std::span<const std::byte>(),
                                               part_file_bytes(layout, geometry));
  PERDURE_ASSERT(CachePart::format(*device, identity, geometry, 0).ok());
  auto part = CachePart::attach(std::move(device));
  PERDURE_ASSERT(part.ok());
  part.value()->set_backing(&backing_file());
  return part.take();
}

// A request and its runs, as they come from a socket. What is accepted is this node's to the last
// byte, and is read as it was written.
bool run_pieces(std::span<const std::byte> bytes) {
  RequestFormat request{};
  std::memcpy(&request, bytes.data(), std::min(sizeof request, bytes.size()));
  if (!PartService::check_shape(request).ok() || request.value > runs_asked_max) return false;
  if (request.verb != static_cast<std::uint32_t>(Verb::write_pieces)) return false;
  std::vector<PiecesFormat> runs(request.value);
  const auto rest = bytes.subspan(std::min(sizeof request, bytes.size()));
  std::memcpy(runs.data(), rest.data(), std::min(rest.size(), runs.size() * sizeof(PiecesFormat)));
  const Layout layout{LayoutKind::cyclic, 2, 1024, 0};
  const auto part = new_part(layout);
  PartService service(*part);
  (void)check_pieces(runs, request.bytes);
  if (request.bytes > bytes_asked_max) return false;  // what passes through takes a call each
  const Bytes written(request.bytes, std::byte{7});
  const bool accepted = service.write_pieces(request, runs, written.data()).ok();
  Bytes got(request.bytes);
  const bool read = service.read_pieces(request, runs, got.data()).ok();
  PERDURE_ASSERT(!accepted || (read && got == written));
  std::uint64_t sum = 0;
  for (const PiecesFormat& run : runs) {
    for (std::uint64_t i = 0; accepted && i < run.count; ++i, sum += run.bytes) {
      const std::uint64_t at = run.offset + i * run.stride;
      PERDURE_ASSERT(place_of(layout, at).node == 1);
      PERDURE_ASSERT(place_of(layout, at + run.bytes - 1).node == 1);
    }
  }
  PERDURE_ASSERT(!accepted || sum == request.bytes);
  PERDURE_ASSERT(backing_file().set_size(0).ok());
  return accepted;
}

std::vector<Bytes> pieces_seeds() {
  std::vector<Bytes> seeds;
  for (const std::uint32_t piece : {1U, 4U, 8U, 24U}) {
    const PiecesFormat runs[] = {{1024, std::uint64_t{2} * piece, piece, 20},
                                 {3072 + 8, piece, piece, 1}};
    const RequestFormat request{static_cast<std::uint32_t>(Verb::write_pieces), 1, 1024,
                                std::uint64_t{21} * piece, 2};
    Bytes seed(sizeof request + sizeof runs);
    std::memcpy(seed.data(), &request, sizeof request);
    std::memcpy(seed.data() + sizeof request, runs, sizeof runs);
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

}  // namespace

const Target part_target = {"part", run_part, part_seeds};
const Target pieces_target = {"pieces", run_pieces, pieces_seeds};

}  // namespace perdure::fuzz
