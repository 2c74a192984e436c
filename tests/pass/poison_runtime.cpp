// SPDX-License-Identifier: BSD-3-Clause
//
// A second runtime of in-place versioning, for tests of the compiler: it keeps no version, but
// makes every use of the interface visible that perdure_ipv_abi.h does not allow.
//
//   - When the first box of an epoch begins, the object is filled with poison (a NaN): a load that
//     the nest does not announce reads that, and the results differ.
//   - What of a box is not stored to stays poison: `box_end` looks for it (abi.R1).
//   - At `box_end`, what the box does not cover must still be poison (abi.R3), and the old copy
//     unchanged (abi.R2).
//   - At random, rows are read in the old copy, in place, or in a copy of them while their place is
//     poisoned, and may be stored to past the cache or not; or there is no box: all that a runtime
//     may answer.
//
// A violation is said on stderr, and the process aborts. POISON_SEED=N chooses. There is no box
// while a thread runs beside the main one, as the runtime has it.
#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"

uintptr_t perdure_ipv_low = 0;
uintptr_t perdure_ipv_high = 0;
uintptr_t perdure_ipv_box_bytes_min = 1;
[[gnu::weak]] volatile int threads_beside = 0;  // the driver of random nests has its own

namespace {

[[noreturn]] void violated(const char* format, ...) {
  va_list words;
  va_start(words, format);
  std::fputs("poison runtime: ", stderr);
  std::vfprintf(stderr, format, words);
  std::fputc('\n', stderr);
  va_end(words);
  std::abort();
}

constexpr uint64_t poison = 0x7ff5a31bc5d792e7;

uint8_t poison_at(const uint8_t* address) {
  return static_cast<uint8_t>(poison >> (8 * (reinterpret_cast<uintptr_t>(address) % 8)));
}

void fill(uint8_t* to, size_t bytes, const uint8_t* phase) {
  for (size_t i = 0; i < bytes; ++i) to[i] = poison_at(phase + i);
}

uint64_t random_word() {
  static uint64_t state = [] {
    const char* text = std::getenv("POISON_SEED");
    return 88172645463325252U ^ (text == nullptr ? 0 : std::strtoull(text, nullptr, 10));
  }();
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

struct Object {
  std::string name;
  uint8_t* at = nullptr;
  size_t bytes = 0;
  std::vector<uint8_t> old, committed, covered, row_copy;
  bool open = false;     // a nest whose object was fresh
  bool touched = false;  // since the persistence point: all of it is current at `at`
  bool may_pass_cache = false;
  bool poisoned = false;  // the box
  uint8_t* box = nullptr;
  size_t box_bytes = 0;  // from its first to its last

  bool holds(const uint8_t* address, size_t count) const {
    return address >= at && address + count <= at + bytes;
  }
  bool changed() const { return std::memcmp(at, committed.data(), bytes) != 0; }
};

std::list<Object> objects;
uint64_t boxes_asked = 0;
uint64_t boxes_taken = 0;
uint64_t boxes_redirected = 0;
uint64_t boxes_past_cache = 0;

Object* find(const void* address) {
  for (Object& object : objects) {
    if (object.holds(static_cast<const uint8_t*>(address), 1)) return &object;
  }
  return nullptr;
}

void open_nest(Object& object) {
  if (object.open || object.touched) return;
  if (object.changed()) {  // stores that nobody announced: the guard would have seen the first
    object.touched = true;
    return;
  }
  object.open = true;
  fill(object.at, object.bytes, object.at);
  std::fill(object.covered.begin(), object.covered.end(), 0);
}

// Makes the row current at its place.
void complete_row(Object& object, const uint8_t* first, size_t bytes) {
  if (!object.open) return;
  const size_t offset = static_cast<size_t>(first - object.at);
  for (size_t i = offset; i < offset + bytes; ++i) {
    if (object.covered[i] == 0) object.at[i] = object.old[i];
  }
}

void check_covered(const Object& object, const uint8_t* row, size_t bytes) {
  for (size_t i = 0; i + 4 <= bytes; ++i) {
    uint8_t wanted[4];
    fill(wanted, 4, row + i);
    if (reinterpret_cast<uintptr_t>(row + i) % 4 == 0 && std::memcmp(row + i, wanted, 4) == 0) {
      violated("byte %zu of a row of %zu bytes of '%s' was not stored to", i, bytes,
               object.name.c_str());
    }
  }
}

// A box as perdure_ipv_box_begin() takes it.
struct Box {
  explicit Box(const perdure_ipv_box& box)
      : first(static_cast<uint8_t*>(box.first)),
        dimensions(static_cast<unsigned>(box.dimensions)),
        counts(box.counts),
        strides(box.strides) {}
  uint8_t* first;
  unsigned dimensions;
  const size_t* counts;
  const size_t* strides;

  bool empty() const {
    for (unsigned d = 0; d < dimensions; ++d) {
      if (counts[d] == 0) return true;
    }
    return false;
  }
  size_t span() const {
    size_t last = 0;
    for (unsigned d = 0; d < dimensions; ++d) last += (counts[d] - 1) * strides[d];
    return last + 1;
  }
  // Whether no two rows overlap, as the loops around them are nested.
  bool plain() const {
    size_t below = counts[0];
    for (unsigned d = 1; d < dimensions; ++d) {
      size_t reach = 0;
      if (__builtin_mul_overflow(counts[d] - 1, strides[d], &reach) || reach > SIZE_MAX / 4 ||
          (counts[d] > 1 && strides[d] < below)) {
        return false;
      }
      below += reach;
    }
    return true;
  }
  void rows(const std::function<void(uint8_t*, size_t)>& use) const {
    rows_of(dimensions - 1, first, use);
  }

 private:
  void rows_of(unsigned d, uint8_t* at, const std::function<void(uint8_t*, size_t)>& use) const {
    if (d == 0) return use(at, counts[0]);
    for (size_t i = 0; i < counts[d]; ++i) rows_of(d - 1, at + i * strides[d], use);
  }
};

// Reads of what the box's rows hold, elsewhere: in the old copy, or in a copy of them.
ptrdiff_t redirect(Object& object, const Box& box) {
  ++boxes_redirected;
  ptrdiff_t load = object.old.data() - object.at;
  if (!object.open) {
    object.row_copy.resize(object.box_bytes + 16);
    const auto start = reinterpret_cast<uintptr_t>(object.row_copy.data());
    uint8_t* copy = object.row_copy.data() + (reinterpret_cast<uintptr_t>(box.first) - start) % 16;
    std::memcpy(copy, box.first, object.box_bytes);
    load = copy - box.first;
  }
  box.rows([](uint8_t* row, size_t bytes) { fill(row, bytes, row); });
  object.poisoned = true;
  return load;
}

bool is_touched(const Object& object, const perdure_ipv_box& box) {
  const auto low = reinterpret_cast<uintptr_t>(object.at);
  for (uint64_t i = 0; i < box.other_count; ++i) {
    const perdure_ipv_range& other = box.others[i];
    if (other.low > other.high) return true;
    if (other.low < low + object.bytes && other.high > low) return true;
  }
  return false;
}

// The runtime may answer so at any time.
bool is_refused(const Object& object, const Box& box, const perdure_ipv_box& given) {
  if (box.dimensions < 1 || box.dimensions > 4 || box.strides[0] != 1) {
    violated("a box of %u dimensions", box.dimensions);
  }
  if (box.empty() || !box.plain() || !object.holds(box.first, box.span())) return true;
  return is_touched(object, given) || random_word() % 16 == 0;
}

// What the box did not cover must be as it was.
void close_nest(Object& object) {
  object.touched = true;
  if (!object.open) return;
  object.open = false;
  if (object.old != object.committed) {
    violated("a store to the old copy of '%s'", object.name.c_str());
  }
  for (size_t i = 0; i < object.bytes; ++i) {
    if (object.covered[i] != 0) continue;
    if (object.at[i] != poison_at(object.at + i)) {
      violated("a store in a nest of '%s', at byte %zu, in no row", object.name.c_str(), i);
    }
    object.at[i] = object.old[i];
  }
}

}  // namespace

extern "C" {

int perdure_ipv_open(perdure_pool*, const perdure_ipv_options*) {
  return 0;
}
int perdure_ipv_restart(uint64_t* version) {
  if (version != nullptr) *version = 0;
  return 0;
}
int perdure_ipv_close(void) {
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "poison runtime: %llu boxes asked for, %llu taken, %llu redirected, %llu past the cache\n",
      number(boxes_asked), number(boxes_taken), number(boxes_redirected), number(boxes_past_cache));
  objects.clear();
  perdure_ipv_low = perdure_ipv_high = 0;
  return 0;
}

int perdure_ipv_object(const char* name, void* address, size_t bytes,
                       const perdure_ipv_object_options*) {
  Object object;
  object.name = name;
  object.at = static_cast<uint8_t*>(address);
  object.bytes = bytes;
  object.old.assign(object.at, object.at + bytes);
  object.committed = object.old;
  object.covered.assign(bytes, 0);
  objects.push_back(std::move(object));
  const auto low = reinterpret_cast<uintptr_t>(address);
  if (perdure_ipv_low == 0 || low < perdure_ipv_low) perdure_ipv_low = low;
  if (low + bytes > perdure_ipv_high) perdure_ipv_high = low + bytes;
  return 0;
}

int perdure_ipv_persist(uint64_t*) {
  for (Object& object : objects) {
    if (object.box != nullptr) violated("'%s' is committed within a nest", object.name.c_str());
    object.old.assign(object.at, object.at + object.bytes);
    object.committed = object.old;
    object.touched = false;
  }
  return 0;
}

perdure_ipv_answer perdure_ipv_box_begin(const perdure_ipv_box* given) {
  if (threads_beside != 0) return {0, PERDURE_IPV_NO_BOX};
  const Box box(*given);
  Object* object = find(box.first);
  ++boxes_asked;
  if (object == nullptr || is_refused(*object, box, *given)) return {0, PERDURE_IPV_NO_BOX};
  if (object->box != nullptr) violated("a box begins in a box of '%s'", object->name.c_str());
  ++boxes_taken;
  open_nest(*object);
  object->box = box.first;
  object->box_bytes = box.span();
  object->poisoned = false;
  object->may_pass_cache =
      box.counts[0] >= PERDURE_IPV_PAST_CACHE_BYTES_MIN && random_word() % 2 == 0;
  ptrdiff_t load = 0;
  if (random_word() % 3 != 0) {
    load = redirect(*object, box);
  } else if (object->open) {
    box.rows([&](uint8_t* row, size_t bytes) { complete_row(*object, row, bytes); });
  }
  return {load, object->may_pass_cache ? PERDURE_IPV_BOX_PAST_CACHE : PERDURE_IPV_BOX};
}

void perdure_ipv_box_end(const perdure_ipv_box* given, int past_cache) {
  const Box box(*given);
  Object* object = find(box.first);
  if (object == nullptr || object->box != box.first || object->box_bytes != box.span()) {
    violated("box_end of another box than that which began");
  }
  if (past_cache != 0 && !object->may_pass_cache) violated("a box past the cache, unasked");
  boxes_past_cache += past_cache != 0 ? 1 : 0;
  box.rows([&](uint8_t* row, size_t bytes) {
    if (object->poisoned) check_covered(*object, row, bytes);
    if (object->open) std::memset(&object->covered[size_t(row - object->at)], 1, bytes);
  });
  object->box = nullptr;
  close_nest(*object);
}

void perdure_ipv_plain(void* address) {
  if (threads_beside != 0) return;  // the guard would see the store
  Object* object = find(address);
  if (object == nullptr) return;
  if (object->box != nullptr) violated("plain in a nest of '%s'", object->name.c_str());
  object->touched = true;
}

void perdure_ipv_touch(void* address, size_t) {
  perdure_ipv_plain(address);
}

}  // extern "C"
