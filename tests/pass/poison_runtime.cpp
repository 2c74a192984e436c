// SPDX-License-Identifier: BSD-3-Clause
//
// A second runtime of in-place versioning, for tests of the compiler: it keeps no version, but
// makes every use of the interface visible that perdure_ipv_abi.h does not allow.
//
//   - When the first row of an epoch begins, the object is filled with poison (a NaN): a load that
//     the nest does not announce reads that, and the results differ.
//   - What of a row is not stored to stays poison: `row_end` looks for it (R1).
//   - At `nest_end`, what no row covered must still be poison (R3), and the old copy unchanged
//   (R2).
//   - Of a box the same is asked, row by row; of one that is said to be stored past the cache, that
//   threads have reported each of its bytes (R6).
//   - At random, rows are read in the old copy, in place, or in a copy of the row while its place
//     is poisoned, and may be stored to past the cache or not: all that a runtime may answer.
//
// A violation is said on stderr, and the process aborts. POISON_SEED=N chooses. One thread, except
// for parts of boxes.
#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"

uintptr_t perdure_ipv_low = 0;
uintptr_t perdure_ipv_high = 0;
uintptr_t perdure_ipv_fetch_ahead = 1024;

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
  bool open = false;     // a nest
  bool touched = false;  // since the persistence point: all of it is current at `at`
  uint8_t* row = nullptr;
  size_t row_bytes = 0;
  bool may_pass_cache = false;
  bool poisoned = false;  // the row, or the box
  uint8_t* box = nullptr;
  size_t box_bytes = 0;  // from its first to its last

  bool holds(const uint8_t* address, size_t count) const {
    return address >= at && address + count <= at + bytes;
  }
  bool changed() const { return std::memcmp(at, committed.data(), bytes) != 0; }
};

std::list<Object> objects;
uint64_t rows_seen = 0;
uint64_t fresh_rows_seen = 0;
uint64_t rows_past_cache = 0;
uint64_t boxes_seen = 0;
uint64_t boxes_redirected = 0;
uint64_t boxes_past_cache = 0;

// Of boxes, as threads reported them.
struct Part {
  const uint8_t* first;
  size_t bytes;
};
std::mutex parts_mutex;
std::vector<Part> parts;

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

// Makes the row current at its place; true if nothing of it was before.
bool complete_row(Object& object, uint8_t* first, size_t bytes, bool copy) {
  if (!object.open) return false;
  const size_t offset = static_cast<size_t>(first - object.at);
  bool fresh = true;
  for (size_t i = offset; i < offset + bytes; ++i) fresh &= object.covered[i] == 0;
  if (fresh && !copy) return true;
  for (size_t i = offset; i < offset + bytes; ++i) {
    if (object.covered[i] == 0) object.at[i] = object.old[i];
  }
  return false;
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

void end_box(const Box& box) {
  Object* object = find(box.first);
  if (object == nullptr) violated("box_end of no object");
  if (object->box == nullptr) return;  // it was taken as plain
  if (object->box != box.first || object->box_bytes != box.span()) {
    violated("box_end of another box than that which began");
  }
  box.rows([&](uint8_t* row, size_t bytes) {
    if (object->poisoned) check_covered(*object, row, bytes);
    if (object->open) std::memset(&object->covered[size_t(row - object->at)], 1, bytes);
  });
  object->box = nullptr;
}

// Of an earlier box.
void forget_parts(const Object& object) {
  const std::lock_guard<std::mutex> lock(parts_mutex);
  parts.erase(std::remove_if(parts.begin(), parts.end(),
                             [&](const Part& part) { return object.holds(part.first, 0); }),
              parts.end());
}

// R6.
void check_parts(const Box& box) {
  const std::lock_guard<std::mutex> lock(parts_mutex);
  box.rows([](uint8_t* row, size_t bytes) {
    std::vector<uint8_t> reported(bytes, 0);
    for (const Part& part : parts) {
      for (size_t i = 0; i < part.bytes; ++i) {
        const ptrdiff_t at = part.first + i - row;
        if (at >= 0 && size_t(at) < bytes) reported[size_t(at)] = 1;
      }
    }
    for (size_t i = 0; i < bytes; ++i) {
      if (reported[i] == 0) {
        violated(
            "byte %zu of a row of %zu bytes of a box was stored past the cache by nobody; %zu "
            "parts were reported",
            i, bytes, parts.size());
      }
    }
  });
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
      "poison runtime: %llu rows, %llu fresh, %llu past the cache, %llu boxes, %llu redirected, "
      "%llu past the cache\n",
      number(rows_seen), number(fresh_rows_seen), number(rows_past_cache), number(boxes_seen),
      number(boxes_redirected), number(boxes_past_cache));
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
    if (object.open) violated("'%s' is committed within a nest", object.name.c_str());
    object.old.assign(object.at, object.at + object.bytes);
    object.committed = object.old;
    object.touched = false;
  }
  return 0;
}

perdure_ipv_range perdure_ipv_extent(const void* address) {
  const Object* object = find(address);
  if (object == nullptr) return {0, 0};
  const auto low = reinterpret_cast<uintptr_t>(object->at);
  return {low, low + object->bytes};
}

perdure_ipv_row perdure_ipv_row_begin(void* first, size_t bytes) {
  auto* row = static_cast<uint8_t*>(first);
  Object* object = find(first);
  if (object == nullptr || !object->holds(row, bytes))
    violated("a row of %zu bytes leaves it", bytes);
  if (object->row != nullptr || object->box != nullptr) {
    violated("a row begins in a row or box of '%s'", object->name.c_str());
  }
  open_nest(*object);
  ++rows_seen;
  object->row = row;
  object->row_bytes = bytes;
  object->may_pass_cache = random_word() % 2 == 0;
  const uint64_t choice = random_word() % 3;
  const bool fresh = complete_row(*object, row, bytes, choice != 0);
  fresh_rows_seen += fresh ? 1 : 0;
  ptrdiff_t load = fresh ? object->old.data() - object->at : 0;
  object->poisoned = fresh || choice == 1;
  if (object->poisoned && !fresh) {
    object->row_copy.resize(bytes + 16);
    // As the row lies to words of 16 bytes, which vectors may want.
    const auto start = reinterpret_cast<uintptr_t>(object->row_copy.data());
    uint8_t* copy = object->row_copy.data() + (reinterpret_cast<uintptr_t>(row) - start) % 16;
    std::memcpy(copy, row, bytes);
    load = copy - row;
  }
  if (object->poisoned) fill(row, bytes, row);
  return {load, object->may_pass_cache ? 1 : 0};
}

void perdure_ipv_row_end(void* first, size_t bytes) {
  Object* object = find(first);
  if (object == nullptr || object->row != first || object->row_bytes != bytes) {
    violated("row_end of another row than that which began");
  }
  if (object->poisoned) check_covered(*object, object->row, object->row_bytes);
  if (object->open)
    std::memset(&object->covered[static_cast<size_t>(object->row - object->at)], 1, bytes);
  object->row = nullptr;
}

void perdure_ipv_row_end_past_cache(void* first, size_t bytes) {
  const Object* object = find(first);
  if (object != nullptr && !object->may_pass_cache) violated("past the cache, unasked");
  ++rows_past_cache;
  perdure_ipv_row_end(first, bytes);
}

perdure_ipv_row perdure_ipv_box_begin(void* first, unsigned dimensions, const size_t* counts,
                                      const size_t* strides) {
  const Box box{static_cast<uint8_t*>(first), dimensions, counts, strides};
  Object* object = find(first);
  if (object == nullptr) violated("a box of no object");
  if (object->row != nullptr || object->box != nullptr) {
    violated("a box begins in a row or box of '%s'", object->name.c_str());
  }
  ++boxes_seen;
  forget_parts(*object);
  if (box.empty()) return {0, 0};
  if (object->open) violated("a box of '%s' begins in a nest of it", object->name.c_str());
  if (!box.plain() || !object->holds(box.first, box.span())) {
    object->touched = true;
    return {0, 0};
  }
  open_nest(*object);
  object->box = box.first;
  object->box_bytes = box.span();
  object->poisoned = false;
  object->may_pass_cache = random_word() % 2 == 0;
  ptrdiff_t load = 0;
  if (random_word() % 3 != 0) {
    load = redirect(*object, box);
  } else if (object->open) {
    box.rows([&](uint8_t* row, size_t bytes) { complete_row(*object, row, bytes, true); });
  }
  return {load, object->may_pass_cache ? 1 : 0};
}

void perdure_ipv_box_end(void* first, unsigned dimensions, const size_t* counts,
                         const size_t* strides) {
  end_box({static_cast<uint8_t*>(first), dimensions, counts, strides});
}

void perdure_ipv_box_end_past_cache(void* first, unsigned dimensions, const size_t* counts,
                                    const size_t* strides) {
  const Box box{static_cast<uint8_t*>(first), dimensions, counts, strides};
  const Object* object = find(first);
  if (object != nullptr && !object->may_pass_cache) violated("a box past the cache, unasked");
  ++boxes_past_cache;
  check_parts(box);
  end_box(box);
}

void perdure_ipv_box_part(const void* first, size_t bytes) {
  const std::lock_guard<std::mutex> lock(parts_mutex);
  parts.push_back({static_cast<const uint8_t*>(first), bytes});
}

void perdure_ipv_box_fence(void) {}

void perdure_ipv_nest_end(void* address) {
  Object* object = find(address);
  if (object == nullptr) violated("nest_end of no object");
  if (object->box != nullptr) violated("nest_end in a box of '%s'", object->name.c_str());
  if (object->row != nullptr) violated("nest_end in a row of '%s'", object->name.c_str());
  object->touched = true;
  if (!object->open) return;
  object->open = false;
  if (object->old != object->committed) {
    violated("a store to the old copy of '%s'", object->name.c_str());
  }
  for (size_t i = 0; i < object->bytes; ++i) {
    if (object->covered[i] != 0) continue;
    if (object->at[i] != poison_at(object->at + i)) {
      violated("a store in a nest of '%s', at byte %zu, in no row", object->name.c_str(), i);
    }
    object->at[i] = object->old[i];
  }
}

void perdure_ipv_plain(void* address) {
  Object* object = find(address);
  if (object == nullptr) return;
  if (object->open) violated("plain in a nest of '%s'", object->name.c_str());
  object->touched = true;
}

void perdure_ipv_touch(void* address, size_t) {
  perdure_ipv_plain(address);
}

}  // extern "C"
