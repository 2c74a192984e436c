#include "cache/cache_part.hpp"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>

#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "base/process_barrier.hpp"
#include "cache/backoff.hpp"

namespace perdure {
namespace {

std::atomic<std::uint64_t> parts_made{0};

constexpr std::uint64_t header_room = 12288;
constexpr std::uint64_t state_room = 12288;
static_assert(sizeof(PartStateFormat) <= state_room);
constexpr std::uint64_t part_bytes_max = std::uint64_t{1} << 48;  // no sum of offsets overflows
constexpr std::uint64_t block_alignment = std::uint64_t{1} << 20;

std::uint64_t align_to(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

struct PartOffsets {
  std::uint64_t state = header_room;
  std::uint64_t journal = header_room + state_room;
  std::uint64_t table = 0;
  std::uint64_t blocks = 0;
  std::uint64_t end = 0;
};

PartOffsets offsets_of(const Layout& layout, const PartGeometry& geometry) {
  PartOffsets at;
  at.table = align_to(at.journal + geometry.journal_slots * sizeof(JournalFormat), 4096);
  // Blocks begin at a page, large ones at a large one.
  const std::uint64_t alignment =
      std::min(block_alignment, std::max<std::uint64_t>(layout.block_bytes, 4096));
  at.blocks = align_to(at.table + geometry.blocks * sizeof(BlockFormat), alignment);
  at.end = at.blocks + geometry.blocks * layout.block_bytes;
  return at;
}

Status damaged(const Device& device, const std::string& what) {
  return {Code::damaged, device.describe().name + ": " + what +
                             "; it is no part of a cached file, or was damaged"};
}

Status check_header(const Device& device, const PartHeaderFormat& header) {
  if (header.magic != part_magic) return damaged(device, "no magic number");
  const bool whole = header.checksum == crc64(&header, offsetof(PartHeaderFormat, checksum));
  if (header.format_version > part_format_version && whole) {
    return {Code::newer_format,
            device.describe().name + ": format " + std::to_string(header.format_version) +
                ", this Perdure reads up to " + std::to_string(part_format_version) +
                "; use the version that wrote it, or a newer one"};
  }
  if (!whole) return damaged(device, "the header's checksum is wrong");
  const bool sane =
      std::has_single_bit(header.block_bytes) && header.block_bytes >= grains_per_block &&
      header.block_bytes <= part_bytes_max &&
      header.blocks <= part_bytes_max / header.block_bytes &&
      header.journal_slots <= journal_slots_max &&
      header.layout <= static_cast<std::uint32_t>(LayoutKind::parts) && header.nodes > 0 &&
      header.node < header.nodes && header.path[part_path_bytes - 1] == '\0' &&
      header.pool[part_path_bytes - 1] == '\0';
  if (!sane) return damaged(device, "the header's numbers can't be right");
  const Layout layout{LayoutKind{header.layout}, header.nodes, header.block_bytes,
                      header.part_blocks};
  const PartOffsets at = offsets_of(layout, {header.blocks, header.journal_slots});
  if (at.state != header.state_offset || at.journal != header.journal_offset ||
      at.table != header.table_offset || at.blocks != header.block_offset) {
    return damaged(device, "the header's offsets can't be right");
  }
  if (device.size_bytes() < at.end) {
    return damaged(device, "the file ends at byte " + std::to_string(device.size_bytes()) + " of " +
                               std::to_string(at.end) + ": truncated");
  }
  return Status::success();
}

PartHeaderFormat make_header(const PartIdentity& identity, const PartGeometry& geometry) {
  const PartOffsets at = offsets_of(identity.layout, geometry);
  PartHeaderFormat header{};
  header.magic = part_magic;
  header.format_version = part_format_version;
  header.node = identity.node;
  header.nodes = identity.layout.nodes;
  header.layout = static_cast<std::uint32_t>(identity.layout.kind);
  std::memcpy(header.instance, identity.instance, sizeof header.instance);
  std::memcpy(header.boot, identity.boot, sizeof header.boot);
  header.block_bytes = identity.layout.block_bytes;
  header.part_blocks = identity.layout.part_blocks;
  header.blocks = geometry.blocks;
  header.state_offset = at.state;
  header.journal_offset = at.journal;
  header.journal_slots = geometry.journal_slots;
  header.table_offset = at.table;
  header.block_offset = at.blocks;
  header.created_ns = wall_clock_ns();
  header.file_device = identity.file_device;
  header.file_inode = identity.file_inode;
  std::memcpy(header.path, identity.path.data(), identity.path.size());
  std::memcpy(header.pool_job, identity.pool_job, sizeof header.pool_job);
  std::memcpy(header.pool, identity.pool.data(), identity.pool.size());
  header.checksum = crc64(&header, offsetof(PartHeaderFormat, checksum));
  return header;
}

}  // namespace

namespace {

// The slots that a thread has at hand, of a few parts: of one whose number leaves the same rest.
struct ThreadSlot {
  std::uint64_t part = 0;
  JournalFormat* slot = nullptr;
};
constexpr std::size_t thread_slots = 16;
[[gnu::tls_model(
    "initial-exec")]] thread_local constinit std::array<ThreadSlot, thread_slots> slots_at_hand;

// The parts of this process by their numbers, for threads that end after a part was closed.
struct LivingParts {
  std::mutex mutex;
  std::map<std::uint64_t, CachePart*> by_number;
};
LivingParts& living_parts() {
  static LivingParts& parts = *new LivingParts;  // threads may end after static objects have gone
  return parts;
}

}  // namespace

std::uint64_t part_file_bytes(const Layout& layout, const PartGeometry& geometry) {
  return offsets_of(layout, geometry).end;
}

// The magic number comes last, in one store: a part whose making was cut short has none, and is
// known by that.
Status CachePart::format(Device& device, const PartIdentity& identity, const PartGeometry& geometry,
                         std::uint64_t file_bytes) {
  for (const std::string* path : {&identity.path, &identity.pool}) {
    if (path->size() < part_path_bytes) continue;
    return {Code::invalid_argument, "the path " + *path + " is longer than " +
                                        std::to_string(part_path_bytes - 1) + " bytes"};
  }
  PartHeaderFormat header = make_header(identity, geometry);
  PERDURE_TRY(device.allocate(0, header.block_offset));
  PartStateFormat state{};
  state.size_bytes = file_bytes;
  state.visible_bytes = file_bytes;
  state.barriers = join_process_barriers() ? 1 : 0;
  device.store(header.state_offset, &state, sizeof state);
  header.magic = 0;
  device.store(0, &header, sizeof header);
  // Only what was stored. The rest of the file is new and so zeros, and the table, 64 bytes for
  // each block that the device could hold, may have hundreds of megabytes.
  device.flush(header.state_offset, sizeof state);
  device.flush(0, sizeof header);
  PERDURE_TRY(device.fence());
  device.store_word(offsetof(PartHeaderFormat, magic), part_magic);
  device.flush(0, sizeof header.magic);
  return device.fence();
}

Result<std::unique_ptr<CachePart>> CachePart::attach(std::unique_ptr<Device> device) {
  if (device->size_bytes() < sizeof(PartHeaderFormat)) {
    return damaged(*device, "only " + std::to_string(device->size_bytes()) + " bytes long");
  }
  PartHeaderFormat header;
  std::memcpy(&header, device->base(), sizeof header);
  PERDURE_TRY(check_header(*device, header));
  const std::string name = device->describe().name;
  std::unique_ptr<CachePart> part(new CachePart(std::move(device), header));
  if (part->barriers_ && !join_process_barriers()) {
    return Status(Code::unsupported,
                  name +
                      ": the processes that use this part rely on membarrier(2), which this one "
                      "is refused; allow it in the container's filter of system calls");
  }
  return part;
}

CachePart::CachePart(std::unique_ptr<Device> device, const PartHeaderFormat& header)
    : device_(std::move(device)),
      header_(header),
      layout_{LayoutKind{header.layout}, header.nodes, header.block_bytes, header.part_blocks},
      shift_(layout_.block_shift()),
      grain_shift_(shift_ - static_cast<unsigned>(std::countr_zero(grains_per_block))),
      number_(++parts_made) {
  std::byte* base = device_->base();
  state_ = reinterpret_cast<PartStateFormat*>(base + header_.state_offset);
  journal_ = reinterpret_cast<JournalFormat*>(base + header_.journal_offset);
  table_ = reinterpret_cast<BlockFormat*>(base + header_.table_offset);
  blocks_ = base + header_.block_offset;
  barriers_ = state_->barriers != 0;
  sparse_ = device_->allocated_bytes() < header_.block_offset;
  live();
}

CachePart::~CachePart() {
  {
    LivingParts& parts = living_parts();
    const std::lock_guard<std::mutex> lock(parts.mutex);
    parts.by_number.erase(number_);
  }
  leave_owners();
}

Status CachePart::join_owners(FileHandle file) {
  auto owners = std::make_unique<PartOwners>(std::move(file), state_->owners);
  PERDURE_TRY(owners->join());
  owners_ = std::move(owners);
  return Status::success();
}

// O1: what is marked with the number first.
void CachePart::leave_owners() {
  {
    const std::lock_guard<std::mutex> lock(slots_mutex_);
    for (JournalFormat* slot : slots_) word(slot->owner).store(0, std::memory_order_release);
    slots_.clear();
  }
  if (owners_ != nullptr) owners_->leave();
}

std::uint64_t CachePart::device_offset(const void* place) const {
  return static_cast<std::uint64_t>(static_cast<const std::byte*>(place) - device_->base());
}

Status CachePart::check_room(std::uint64_t block) const {
  if (block < header_.blocks) return Status::success();
  return {Code::no_space,
          std::string(header_.path) + ": node " + std::to_string(header_.node) + " has room for " +
              std::to_string(header_.blocks << shift_) +
              " bytes of the file in its cache, and is asked for " +
              std::to_string((block + 1) << shift_) +
              "; choose a larger device (perdure_cache_directory), or do not cache the file"};
}

// How many bytes of the block the cached file still has to say.
std::uint64_t CachePart::visible_in(std::uint64_t block) const {
  const std::uint64_t begin = file_block_of(layout_, {header_.node, block}) << shift_;
  const std::uint64_t visible = word(state_->visible_bytes).load(std::memory_order_acquire);
  return visible <= begin ? 0 : std::min(layout_.block_bytes, visible - begin);
}

Status CachePart::fill_claimed(std::uint64_t block) {
  PERDURE_TRY(device_->allocate(device_offset(bytes_of(block)), layout_.block_bytes));
  const std::uint64_t visible = visible_in(block);
  if (visible == 0) return Status::success();
  const std::uint64_t begin = file_block_of(layout_, {header_.node, block}) << shift_;
  filled_bytes_.fetch_add(visible, std::memory_order_relaxed);
  const Status read = backing_->read(begin, bytes_of(block), visible);
  // What is filled later may be less, and zeros must follow it.
  if (!read.ok()) std::memset(bytes_of(block), 0, visible);
  return read;
}

// Before it is marked: whoever settles what a dead process left finds it.
void CachePart::touch(std::uint64_t block) {
  auto touched = word(state_->touched_blocks);
  std::uint64_t seen = touched.load(std::memory_order_relaxed);
  while (seen <= block && !touched.compare_exchange_weak(seen, block + 1)) {
  }
}

// P1. Whoever finds the block absent fills it, the others wait.
Status CachePart::await_present(std::uint64_t block) {
  PERDURE_TRY(check_room(block));
  touch(block);
  auto state = word(table_[block].state);
  Backoff backoff;
  while (true) {
    auto seen = static_cast<std::uint32_t>(BlockState::absent);
    if (state.compare_exchange_strong(seen, filling())) {
      const Status filled = fill_claimed(block);
      state.store(
          static_cast<std::uint32_t>(filled.ok() ? BlockState::present : BlockState::absent),
          std::memory_order_release);
      return filled;
    }
    if (seen == static_cast<std::uint32_t>(BlockState::present)) return Status::success();
    if (backoff.wait()) PERDURE_TRY(settle_if_dead(seen >> 2));
  }
}

Status CachePart::fill(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t end = offset + bytes;
  for (std::uint64_t at = offset >> shift_; (at << shift_) < end; ++at) {
    const Place place = place_of(layout_, at << shift_);
    if (place.node == header_.node) PERDURE_TRY(make_present(place.block));
  }
  return Status::success();
}

Status CachePart::read(std::uint64_t offset, void* to, std::uint64_t bytes) {
  auto* place = static_cast<std::byte*>(to);
  while (bytes != 0) {
    const std::uint64_t block = place_of(layout_, offset).block;
    const std::uint64_t within = offset & (layout_.block_bytes - 1);
    const std::uint64_t run = std::min(bytes, layout_.block_bytes - within);
    PERDURE_TRY(make_present(block));
    std::memcpy(place, bytes_of(block) + within, run);
    place += run;
    offset += run;
    bytes -= run;
  }
  return Status::success();
}

Result<const std::byte*> CachePart::view(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t within = offset & (layout_.block_bytes - 1);
  PERDURE_ASSERT(within + bytes <= layout_.block_bytes);
  const std::uint64_t block = place_of(layout_, offset).block;
  PERDURE_TRY(make_present(block));
  return static_cast<const std::byte*>(bytes_of(block) + within);
}

CachePart::Grains CachePart::grains_of(std::uint64_t within, std::uint64_t bytes) const {
  const auto first = static_cast<unsigned>(within >> grain_shift_);
  const auto last = static_cast<unsigned>((within + bytes - 1) >> grain_shift_);
  Grains grains{};
  for (unsigned half = 0; half < 2; ++half) {
    const unsigned low = half * 64;
    if (last < low || first >= low + 64) continue;
    const unsigned from = first <= low ? 0 : first - low;
    const unsigned to = last >= low + 63 ? 63 : last - low;
    grains.bits[half] = (~std::uint64_t{0} >> (63 - to)) & (~std::uint64_t{0} << from);
  }
  return grains;
}

void CachePart::grow_size(std::uint64_t bytes) {
  auto size = word(state_->size_bytes);
  std::uint64_t seen = size.load(std::memory_order_relaxed);
  while (seen < bytes && !size.compare_exchange_weak(seen, bytes)) {
  }
}

// P4: whoever clears a bit before it reads the bytes either sees these or leaves the bit set. The
// exchange has a fence, which would wait for the bytes' cache lines.
void CachePart::mark_dirty(std::uint64_t& dirty, std::uint64_t grains) const {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (barriers_ && (word(dirty).load(std::memory_order_relaxed) & grains) == grains) return;
  word(dirty).fetch_or(grains);
}

// P2 (b) and (c).
void CachePart::finish_write(std::uint64_t block, std::uint64_t within, std::uint64_t bytes) {
  const std::uint64_t file_block =
      layout_.nodes == 1 ? block : file_block_of(layout_, {header_.node, block});
  grow_size((file_block << shift_) + within + bytes);
  if ((within ^ (within + bytes - 1)) >> grain_shift_ == 0) {
    const auto grain = static_cast<unsigned>(within >> grain_shift_);
    mark_dirty(table_[block].dirty[grain / 64], std::uint64_t{1} << (grain % 64));
    return;
  }
  const Grains grains = grains_of(within, bytes);
  for (unsigned half = 0; half < 2; ++half) {
    if (grains.bits[half] != 0) mark_dirty(table_[block].dirty[half], grains.bits[half]);
  }
}

// P2 (a) to (c) in a block that is present.
Status CachePart::write_into(std::uint64_t block, std::uint64_t within, const std::byte* from,
                             std::uint64_t bytes) {
  if (undo_ != nullptr) PERDURE_TRY(before_change(block, within, bytes));
  std::memcpy(bytes_of(block) + within, from, bytes);
  finish_write(block, within, bytes);
  return Status::success();
}

// A write of all that the cached file has to say of the block need not read it.
Status CachePart::write_block(std::uint64_t block, std::uint64_t within, const std::byte* from,
                              std::uint64_t bytes) {
  if (is_present(block)) return write_into(block, within, from, bytes);
  PERDURE_TRY(check_room(block));
  touch(block);
  auto state = word(table_[block].state);
  auto seen = static_cast<std::uint32_t>(BlockState::absent);
  if (undo_ != nullptr || within != 0 || bytes < visible_in(block) ||
      !state.compare_exchange_strong(seen, filling())) {
    PERDURE_TRY(await_present(block));
    return write_into(block, within, from, bytes);
  }
  const Status allocated = device_->allocate(device_offset(bytes_of(block)), layout_.block_bytes);
  if (!allocated.ok()) {
    state.store(static_cast<std::uint32_t>(BlockState::absent), std::memory_order_release);
    return allocated;
  }
  std::memcpy(bytes_of(block), from, bytes);
  state.store(static_cast<std::uint32_t>(BlockState::present), std::memory_order_release);
  finish_write(block, 0, bytes);
  return Status::success();
}

std::uint64_t CachePart::checksum_of(const JournalFormat& slot, std::uint64_t length) {
  const std::uint64_t seed = crc64(&slot.offset, sizeof slot.offset, length);
  return crc64(slot.bytes, length, seed) | 1;
}

// A slot that no process uses.
JournalFormat* CachePart::claim_slot() {
  const std::lock_guard<std::mutex> lock(slots_mutex_);
  for (std::uint64_t i = 0; i < header_.journal_slots; ++i) {
    std::uint64_t nobody = 0;
    if (word(journal_[i].owner).compare_exchange_strong(nobody, owner())) {
      slots_.push_back(&journal_[i]);
      return slots_.back();
    }
  }
  return nullptr;
}

void CachePart::live() {
  LivingParts& parts = living_parts();
  const std::lock_guard<std::mutex> lock(parts.mutex);
  parts.by_number[number_] = this;
}

void CachePart::give_slot(std::uint64_t part, JournalFormat* slot) {
  if (slot == nullptr) return;
  LivingParts& parts = living_parts();
  const std::lock_guard<std::mutex> lock(parts.mutex);
  const auto found = parts.by_number.find(part);
  if (found == parts.by_number.end()) return;
  const std::lock_guard<std::mutex> slots(found->second->slots_mutex_);
  // The part may have been left, and the slot be another's.
  if (std::erase(found->second->slots_, slot) == 0) return;
  word(slot->owner).store(0, std::memory_order_release);
}

// Called when a thread needs a slot for the first time, and gives them all back when it ends.
void CachePart::watch_thread() {
  struct End {
    ~End() {
      for (const ThreadSlot& held : slots_at_hand) give_slot(held.part, held.slot);
    }
  };
  static thread_local End end;
  (void)end;
}

void CachePart::give_slot_of_thread() {
  ThreadSlot& mine = slots_at_hand[number_ % thread_slots];
  if (mine.part != number_) return;
  give_slot(number_, mine.slot);
  mine = {};
}

JournalFormat* CachePart::slot_of_thread() {
  ThreadSlot& mine = slots_at_hand[number_ % thread_slots];
  if (mine.part == number_ && mine.slot != nullptr) return mine.slot;
  watch_thread();
  give_slot(mine.part, mine.slot);
  JournalFormat* slot = claim_slot();
  if (slot == nullptr && settle_dead().ok())
    slot = claim_slot();  // else there are too many threads
  mine = {number_, slot};
  return mine.slot;
}

// P3.
class CachePart::Intention {
 public:
  Intention(CachePart& part, std::uint64_t offset, const std::byte* from, std::uint64_t bytes)
      : part_(part), slot_(part.slot_of_thread()) {
    if (slot_ == nullptr) return;
    // A process dies between two stores of its program; the compiler keeps them in order here.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    slot_->offset = offset;
    slot_->checksum = 0;
    std::memcpy(slot_->bytes, from, bytes);
    bytes_ = bytes;
  }
  ~Intention() {
    if (slot_ == nullptr) return;
    word(slot_->length).store(0, std::memory_order_release);
  }
  Intention(const Intention&) = delete;
  Intention& operator=(const Intention&) = delete;

  bool possible() const { return slot_ != nullptr; }
  void declare() {
    word(slot_->length).store(bytes_, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  // P6 (1).
  Status declare_durably() {
    slot_->checksum = CachePart::checksum_of(*slot_, bytes_);
    declare();
    Device& device = *part_.device_;
    device.flush(part_.device_offset(slot_), offsetof(JournalFormat, bytes) + bytes_);
    return device.fence();
  }
  // P6 (4).
  Status retract_durably() {
    word(slot_->length).store(0, std::memory_order_release);
    Device& device = *part_.device_;
    device.flush(part_.device_offset(&slot_->length), sizeof slot_->length);
    return device.fence();
  }

 private:
  CachePart& part_;
  JournalFormat* slot_;
  std::uint64_t bytes_ = 0;
};

Status CachePart::write_small(std::uint64_t offset, const std::byte* from, std::uint64_t bytes,
                              Acknowledge when) {
  const std::uint64_t block = place_of(layout_, offset).block;
  const std::uint64_t within = offset & (layout_.block_bytes - 1);
  const std::uint64_t first = std::min(bytes, layout_.block_bytes - within);
  const std::uint64_t next = first == bytes ? block : place_of(layout_, offset + first).block;
  PERDURE_TRY(make_present(block));
  if (first != bytes) PERDURE_TRY(make_present(next));
  Intention intention(*this, offset, from, bytes);
  if (!intention.possible()) {
    return {Code::no_space, std::string(header_.path) + ": more than " +
                                std::to_string(header_.journal_slots) + " threads of node " +
                                std::to_string(header_.node) + " write at once"};
  }
  if (when == Acknowledge::durable) {
    PERDURE_TRY(intention.declare_durably());
  } else {
    intention.declare();
  }
  PERDURE_TRY(write_into(block, within, from, first));
  if (first != bytes) PERDURE_TRY(write_into(next, 0, from + first, bytes - first));
  if (when != Acknowledge::durable) return Status::success();
  PERDURE_TRY(keep(block, within, first));
  if (first != bytes) PERDURE_TRY(keep(next, 0, bytes - first));
  return intention.retract_durably();
}

namespace {

// One store instruction can't be torn (D2).
bool store_whole(std::byte* to, const void* from, std::uint64_t bytes) {
  if (bytes != 8 || reinterpret_cast<std::uintptr_t>(to) % 8 != 0) return false;
  std::uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to))
      .store(value, std::memory_order_relaxed);
  return true;
}

}  // namespace

bool CachePart::try_write(std::uint64_t offset, const void* from, std::uint64_t bytes) {
  const Place place = place_of(layout_, offset);
  const std::uint64_t within = offset & (layout_.block_bytes - 1);
  if (place.node != header_.node || !is_present(place.block) || undo_ != nullptr) return false;
  if (bytes - 1 >= journal_bytes || within + bytes > layout_.block_bytes) return false;
  std::byte* to = bytes_of(place.block) + within;
  if (!store_whole(to, from, bytes)) {
    JournalFormat* slot = slot_of_thread();
    if (slot == nullptr) return false;
    slot->offset = offset;
    slot->checksum = 0;
    std::memcpy(slot->bytes, from, bytes);
    word(slot->length).store(bytes, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::memcpy(to, slot->bytes, bytes);
    finish_write(place.block, within, bytes);
    word(slot->length).store(0, std::memory_order_release);
    return true;
  }
  finish_write(place.block, within, bytes);
  return true;
}

Status CachePart::write(std::uint64_t offset, const void* from, std::uint64_t bytes,
                        Acknowledge when) {
  const auto* place = static_cast<const std::byte*>(from);
  if (bytes == 0) return Status::success();
  if (when != Acknowledge::durable && try_write(offset, from, bytes)) return Status::success();
  if (bytes <= journal_bytes && bytes <= layout_.block_bytes) {
    return write_small(offset, place, bytes, when);
  }
  while (bytes != 0) {
    const std::uint64_t block = place_of(layout_, offset).block;
    const std::uint64_t within = offset & (layout_.block_bytes - 1);
    const std::uint64_t run = std::min(bytes, layout_.block_bytes - within);
    PERDURE_TRY(write_block(block, within, place, run));
    if (when == Acknowledge::durable) PERDURE_TRY(keep(block, within, run));
    place += run;
    offset += run;
    bytes -= run;
  }
  return Status::success();
}

// P6 (2) and (3).
Status CachePart::keep(std::uint64_t block, std::uint64_t within, std::uint64_t bytes) {
  BlockFormat& entry = table_[block];
  const Grains grains = grains_of(within, bytes);
  bool flushed_whole = false;
  for (unsigned half = 0; half < 2; ++half) {
    const std::uint64_t kept = word(entry.kept[half]).load(std::memory_order_acquire);
    if ((grains.bits[half] & ~kept) != 0) flushed_whole = true;
  }
  if (flushed_whole) {
    const std::uint64_t grain = std::uint64_t{1} << grain_shift_;
    const std::uint64_t begin = within / grain * grain;
    device_->flush(device_offset(bytes_of(block)) + begin, align_to(within + bytes, grain) - begin);
  } else {
    device_->flush(device_offset(bytes_of(block)) + within, bytes);
  }
  PERDURE_TRY(device_->fence());
  for (unsigned half = 0; half < 2; ++half) {
    if (grains.bits[half] != 0) word(entry.kept[half]).fetch_or(grains.bits[half]);
  }
  device_->flush(device_offset(&entry), sizeof entry);
  device_->flush(header_.state_offset, sizeof(std::uint64_t));
  return device_->fence();
}

void CachePart::flush_grains(std::uint64_t block, const Grains& grains) {
  for (unsigned grain = 0; grain < grains_per_block; ++grain) {
    if (!grains.has(grain)) continue;
    device_->flush(device_offset(bytes_of(block)) + (std::uint64_t{grain} << grain_shift_),
                   std::size_t{1} << grain_shift_);
  }
}

Status CachePart::persist() {
  const std::uint64_t blocks = blocks_in_use();
  std::uint64_t version = 0;
  if (undo_ != nullptr) {
    PERDURE_TRY_ASSIGN(version, epoch());
  }
  std::vector<std::pair<std::uint64_t, Grains>> found;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    if (!is_present(block)) continue;
    BlockFormat& entry = table_[block];
    Grains grains{};
    for (unsigned half = 0; half < 2; ++half) {
      grains.bits[half] = word(entry.dirty[half]).load(std::memory_order_acquire) |
                          word(entry.leaving[half]).load(std::memory_order_acquire);
    }
    if (undo_ != nullptr) drop_unchanged(block, version, grains);
    if (grains.none()) continue;
    flush_grains(block, grains);
    found.emplace_back(block, grains);
  }
  PERDURE_TRY(device_->fence());
  for (const auto& [block, grains] : found) {
    for (unsigned half = 0; half < 2; ++half) {
      if (grains.bits[half] != 0) word(table_[block].kept[half]).fetch_or(grains.bits[half]);
    }
    device_->flush(device_offset(&table_[block]), sizeof(BlockFormat));
  }
  device_->flush(header_.state_offset, sizeof(std::uint64_t));
  return device_->fence();
}

std::uint64_t CachePart::blocks_in_use() const {
  return std::min(header_.blocks, part_blocks_for(layout_, header_.node, size_bytes()));
}

// Nobody reads or writes meanwhile. The part is cut first, then the cached file, by the caller: a
// crash between the two leaves bytes, also older ones, where the call was to remove them, and
// touches no others.
//   1. the size, fence: recovery writes nothing beyond it
//   2. what is cut off is neither kept nor anything but zeros, fence: nor if the file grows again
//   3. its space is given back
Status CachePart::set_size(std::uint64_t bytes) {
  if (undo_ != nullptr && bytes < size_bytes()) {
    return {Code::unsupported, std::string(header_.path) +
                                   " is committed with a pool and can't be made smaller; close it "
                                   "and open it without perdure_cache_pool"};
  }
  const std::uint64_t before = blocks_in_use();
  auto visible = word(state_->visible_bytes);
  if (visible.load() > bytes) visible.store(bytes);
  word(state_->size_bytes).store(bytes);
  device_->flush(header_.state_offset, sizeof(std::uint64_t));
  PERDURE_TRY(device_->fence());
  std::vector<std::uint64_t> gone;
  for (std::uint64_t block = 0; block < before; ++block) {
    const std::uint64_t begin = file_block_of(layout_, {header_.node, block}) << shift_;
    if (begin + layout_.block_bytes <= bytes || !is_present(block)) continue;
    if (begin >= bytes) {
      static constexpr BlockFormat absent{};
      device_->store(device_offset(&table_[block]), &absent, sizeof absent);
      device_->flush(device_offset(&table_[block]), sizeof absent);
      gone.push_back(block);
      continue;
    }
    const std::uint64_t within = bytes - begin;
    std::memset(bytes_of(block) + within, 0, layout_.block_bytes - within);
    device_->flush(device_offset(bytes_of(block)) + within, layout_.block_bytes - within);
  }
  PERDURE_TRY(device_->fence());
  for (const std::uint64_t block : gone) {
    PERDURE_TRY(device_->discard(device_offset(bytes_of(block)), layout_.block_bytes));
  }
  return Status::success();
}

bool CachePart::try_lock(std::uint64_t owner) {
  std::uint64_t nobody = 0;
  const std::uint64_t mark = owner << owner_bits | this->owner();
  if (word(state_->lock).compare_exchange_strong(nobody, mark)) return true;
  // Whoever asks, asks again; an error of settling comes to light where the part is used.
  if (owner_of(nobody) != this->owner()) (void)settle_if_dead(owner_of(nobody));
  return false;
}

bool CachePart::unlock(std::uint64_t owner) {
  std::uint64_t mark = owner << owner_bits | this->owner();
  return word(state_->lock).compare_exchange_strong(mark, 0);
}

int CachePart::take_pointer() {
  auto used = word(state_->pointers_used);
  std::uint64_t seen = used.load();
  while (true) {
    const int slot = std::countr_one(seen);
    if (slot == static_cast<int>(shared_pointers_max)) return -1;
    if (!used.compare_exchange_weak(seen, seen | (std::uint64_t{1} << slot))) continue;
    pointer(slot).store(0);
    return slot;
  }
}

void CachePart::give_pointer(int slot) {
  word(state_->pointers_used).fetch_and(~(std::uint64_t{1} << slot));
}

}  // namespace perdure
