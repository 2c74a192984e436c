// SPDX-License-Identifier: BSD-3-Clause
//
// What programs and instrumented code call: perdure_ipv_check_abi.h, perdure_ipv.h,
// perdure_ipv_abi.h, and the markers of iterations of perdure_trace.h.
#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

#include "base/ipv_builds.hpp"
#include "ipv_check/fortran_array.hpp"
#include "ipv_check/process.hpp"
#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"
#include "perdure/perdure_ipv_check_abi.h"
#include "perdure/perdure_trace.h"

namespace {

using namespace perdure;
using namespace perdure::ipv_check;

void access(std::uint64_t address, std::uint64_t bytes, Site& site, bool is_store) {
  if (!is_in_reach(address, bytes)) return;
  const Inside inside = Inside::for_access();
  if (!inside) return;
  if (inside->record) {
    is_store ? inside->record->store(address, bytes, site)
             : inside->record->load(address, bytes, site);
  } else {
    is_store ? inside->checker->store(address, bytes, site)
             : inside->checker->load(address, bytes, site);
  }
}

void access_lanes(std::uint64_t address, std::uint64_t element_bytes, std::uint64_t lanes,
                  Site& site, bool is_store) {
  for (; lanes != 0; lanes >>= 1U, address += element_bytes) {
    if ((lanes & 1U) != 0) access(address, element_bytes, site, is_store);
  }
}

int code_of(const Status& status) {
  if (!status.ok()) say(status.message());
  return static_cast<int>(status.code());
}

// Runs `use(process)`, which gives a Status, for a function of perdure_ipv.h.
template <typename Use>
int call(Use use) {
  const Inside inside;
  if (!inside) return PERDURE_OK;
  try {
    const int code = code_of(use(*inside));
    set_reach(*inside);
    return code;
  } catch (const std::bad_alloc&) {
    return code_of({Code::no_space, "there is no memory for the checker's copy of an object"});
  }
}

void begin_iteration(Process& self, const char* marks) {
  self.marks = marks;
  self.record->begin_iteration();
  set_reach(self);
}

RowBox rows_of(const perdure_ipv_box& given) {
  RowBox box;
  box.first = reinterpret_cast<std::uintptr_t>(given.first);
  box.dimensions = static_cast<unsigned>(given.dimensions);
  for (unsigned d = 0; d < box.dimensions; ++d) {
    box.counts[d] = given.counts[d];
    box.strides[d] = given.strides[d];
  }
  return box;
}

// R3: what else the nest may touch is none of the object's.
bool is_touched(const Checker& checker, const perdure_ipv_box& box) {
  const auto [low, high] = checker.extent(reinterpret_cast<std::uintptr_t>(box.first));
  for (std::uint64_t i = 0; i < box.other_count; ++i) {
    if (box.others[i].low < high && box.others[i].high > low) return true;
  }
  return false;
}

bool is_box(const perdure_ipv_box& box) {
  if (box.dimensions >= 1 && box.dimensions <= RowBox::dimensions_max) return true;
  say("a box of " + std::to_string(box.dimensions) + " dimensions is ignored; there may be 1 to 4");
  return false;
}

// What `record` calls the arrays of a pair.
std::string first_of(const std::string& pair) {
  return "first array of " + pair;
}
std::string second_of(const std::string& pair) {
  return "second array of " + pair;
}

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

extern "C" {

PERDURE_API void perdure_ipv_check_load(std::uint64_t address, std::uint64_t bytes,
                                        perdure_ipv_site* site) {
  access(address, bytes, *site, false);
}

PERDURE_API void perdure_ipv_check_store(std::uint64_t address, std::uint64_t bytes,
                                         perdure_ipv_site* site) {
  access(address, bytes, *site, true);
}

PERDURE_API void perdure_ipv_check_load_lanes(std::uint64_t address, std::uint64_t element_bytes,
                                              std::uint64_t lanes, perdure_ipv_site* site) {
  access_lanes(address, element_bytes, lanes, *site, false);
}

PERDURE_API void perdure_ipv_check_store_lanes(std::uint64_t address, std::uint64_t element_bytes,
                                               std::uint64_t lanes, perdure_ipv_site* site) {
  access_lanes(address, element_bytes, lanes, *site, true);
}

PERDURE_API void perdure_ipv_check_copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes,
                                        perdure_ipv_site* site) {
  access(from, bytes, *site, false);
  access(to, bytes, *site, true);
}

PERDURE_API void perdure_ipv_check_assign(const void* to, const void* from,
                                          perdure_ipv_site* site) {
  const auto announce = [site](const void* descriptor, bool is_store) {
    static_cast<const FortranArray*>(descriptor)
        ->for_runs([&](std::uintptr_t address, std::size_t bytes) {
          access(address, bytes, *site, is_store);
        });
  };
  announce(from, false);
  announce(to, true);
}

PERDURE_API void perdure_ipv_check_here(perdure_ipv_site* site) {
  set_here(site);
}

PERDURE_API void perdure_ipv_check_globals(const perdure_ipv_global* globals, std::uint64_t count) {
  const Inside inside;
  if (!inside || !inside->record) return;
  for (const perdure_ipv_global* global = globals; global != globals + count; ++global) {
    inside->record->add_variable(reinterpret_cast<std::uintptr_t>(global->address), global->bytes,
                                 global->name, global->file, global->line, global->is_scalar != 0);
  }
}

// --- perdure_ipv.h -------------------------------------------------------------------------------

PERDURE_API int perdure_ipv_open(perdure_pool* /*pool*/, const perdure_ipv_options* options) {
  return call([&](Process& self) {
    self.persists = true;
    if (self.record) return Status::success();
    const unsigned every = options == nullptr ? 1 : options->every;
    return self.checker->open(self.every != 0 ? self.every : every);
  });
}

PERDURE_API int perdure_ipv_object(const char* name, void* address, size_t bytes,
                                   const perdure_ipv_object_options* /*options*/) {
  return call([&](Process& self) {
    const std::string text = name == nullptr ? "" : name;
    if (self.checker) return self.checker->add(text, address, bytes);
    self.record->add_named(reinterpret_cast<std::uintptr_t>(address), bytes, text);
    return Status::success();
  });
}

PERDURE_API int perdure_ipv_resize(const char* name, void* address, size_t bytes) {
  return call([&](Process& self) {
    const std::string text = name == nullptr ? "" : name;
    if (self.checker) return self.checker->resize(text, address, bytes);
    self.record->resize_named(reinterpret_cast<std::uintptr_t>(address), bytes, text);
    return Status::success();
  });
}

PERDURE_API int perdure_ipv_pair(const char* name, void* a, void* b, size_t bytes) {
  return call([&](Process& self) {
    const std::string text = name == nullptr ? "" : name;
    if (self.checker) return self.checker->add_pair(text, a, b, bytes);
    self.record->add_named(reinterpret_cast<std::uintptr_t>(a), bytes, first_of(text));
    self.record->add_named(reinterpret_cast<std::uintptr_t>(b), bytes, second_of(text));
    return Status::success();
  });
}

PERDURE_API int perdure_ipv_resize_pair(const char* name, void* a, void* b, size_t bytes) {
  return call([&](Process& self) {
    const std::string text = name == nullptr ? "" : name;
    if (a == nullptr || b == nullptr) {
      return Status(Code::invalid_argument, "two arrays are needed");
    }
    if (self.checker) return self.checker->resize(text, a, bytes, b);
    self.record->resize_named(reinterpret_cast<std::uintptr_t>(a), bytes, first_of(text));
    self.record->resize_named(reinterpret_cast<std::uintptr_t>(b), bytes, second_of(text));
    return Status::success();
  });
}

PERDURE_API int perdure_ipv_alive(const char* name, void** array) {
  return call([&](Process& self) {
    const std::string text = name == nullptr ? "" : name;
    if (self.checker) {
      PERDURE_TRY_ASSIGN(*array, self.checker->alive(text));
      return Status::success();
    }
    const bool other = self.record->iterations_of(first_of(text)) % 2 != 0;
    *array = self.record->address_of(other ? second_of(text) : first_of(text));
    if (*array != nullptr) return Status::success();
    return Status(Code::not_found, "perdure_ipv_alive: no pair is called ", text);
  });
}

PERDURE_API int perdure_ipv_ranks(const char* /*name*/, int /*ranks*/) {
  return PERDURE_OK;  // nothing comes back here
}

PERDURE_API void* perdure_ipv_alloc(size_t bytes) {
  const std::size_t whole = whole_pages(bytes);
  void* memory = ::aligned_alloc(whole_pages(1), whole == 0 ? whole_pages(1) : whole);
  if (memory != nullptr) std::memset(memory, 0, whole);
  return memory;
}

PERDURE_API void perdure_ipv_free(void* address) {
  std::free(address);
}

PERDURE_API int perdure_ipv_restart(uint64_t* version) {
  return call([&](Process& self) {
    if (version != nullptr) *version = 0;
    if (self.checker) return self.checker->restart();
    begin_iteration(self, "persist");
    return Status::success();
  });
}

PERDURE_API int perdure_ipv_persist(uint64_t* version) {
  Site& site = take_here();
  return call([&](Process& self) {
    self.persists = true;
    if (self.checker) return self.checker->persist(self.checker->number_of(site), version);
    begin_iteration(self, "persist");
    if (version != nullptr) *version = self.record->iterations();
    return Status::success();
  });
}

PERDURE_API int perdure_ipv_wait(uint64_t* version) {
  return call([&](Process& self) {
    if (version != nullptr) *version = self.checker ? self.checker->versions() : 0;
    return Status::success();
  });
}

PERDURE_API int perdure_ipv_close(void) {
  Site& site = take_here();
  return call([&](Process& self) {
    if (self.checker) return self.checker->close(self.checker->number_of(site));
    return Status::success();  // what follows is after the newest iteration anyway
  });
}

PERDURE_API void perdure_ipv_touch(void* address, size_t bytes) {
  Site& site = take_here();
  const Inside inside;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (!inside) return;
  if (inside->record) {
    inside->record->store(begin, bytes, site);
  } else {
    inside->checker->touch(begin, bytes, inside->checker->number_of(site));
  }
}

PERDURE_API int perdure_ipv_pin(const void* address) {
  return call([&](Process& self) {
    return self.checker ? self.checker->pin(address, true) : Status::success();
  });
}

PERDURE_API int perdure_ipv_unpin(const void* address) {
  return call([&](Process& self) {
    return self.checker ? self.checker->pin(address, false) : Status::success();
  });
}

PERDURE_API int perdure_ipv_status(const char* name, perdure_ipv_object_status* status) {
  return call([&](Process& self) {
    perdure_ipv_object_status filled = {};
    filled.tier = PERDURE_IPV_STREAM;
    if (self.checker) {
      PERDURE_TRY_ASSIGN(auto found, self.checker->find(name == nullptr ? "" : name));
      const Shadow::Counts& counts = found->counts();
      filled.versions = counts.versions;
      filled.rows = counts.rows;
      filled.fresh_row_bytes = counts.fresh_row_bytes;
      filled.copied_bytes = counts.copied_bytes;
      filled.swaps = counts.swaps;
      filled.guard_faults = counts.unannounced;
      filled.dram_bytes = 2 * found->bytes();
    }
    *status = filled;
    return Status::success();
  });
}

PERDURE_API int perdure_flush_init(unsigned /*threads*/) {
  return PERDURE_OK;
}

PERDURE_API int perdure_flush_async(const void* address, size_t bytes) {
  const Inside inside;
  if (inside && inside->checker) {
    inside->checker->flush_promised(reinterpret_cast<std::uintptr_t>(address), bytes);
  }
  return PERDURE_OK;
}

PERDURE_API int perdure_flush_barrier(void) {
  return PERDURE_OK;
}

// --- perdure_ipv_abi.h ---------------------------------------------------------------------------

PERDURE_API perdure_ipv_answer perdure_ipv_box_begin(const perdure_ipv_box* box) {
  const Inside inside;
  if (!inside || !inside->checker || !is_box(*box)) return {0, PERDURE_IPV_NO_BOX};
  Checker& checker = *inside->checker;
  const RowBox rows = rows_of(*box);
  if (is_touched(checker, *box)) return {0, PERDURE_IPV_NO_BOX};
  const auto load = checker.row_begin(rows, checker.number_of(take_here()));
  if (!load) return {0, PERDURE_IPV_NO_BOX};
  return {*load, PERDURE_IPV_BOX};
}

PERDURE_API void perdure_ipv_box_end(const perdure_ipv_box* box, int /*past_cache*/) {
  const Inside inside;
  if (!inside || !inside->checker || !is_box(*box)) return;
  Checker& checker = *inside->checker;
  const SiteNumber here = checker.number_of(take_here());
  checker.row_end(rows_of(*box), here);
  checker.nest_end(reinterpret_cast<std::uintptr_t>(box->first), here);
}

PERDURE_API void perdure_ipv_plain(void* address) {
  const Inside inside;
  if (inside && inside->checker) {
    inside->checker->plain(reinterpret_cast<std::uintptr_t>(address));
  }
}

PERDURE_API void perdure_ipv_build_is(const perdure_ipv_build* build) {
  const Inside inside;
  if (!inside) return;
  try {
    note_ipv_build({std::string(build->hash, sizeof build->hash),
                    std::memcmp(build->word, PERDURE_IPV_CHECKED, sizeof build->word) == 0,
                    build->source});
  } catch (const std::bad_alloc&) {  // the report lacks it
  }
}

// --- markers -------------------------------------------------------------------------------------

PERDURE_API void perdure_trace_begin(const char* /*name*/) {}

// An iteration of the main loop begins. Where the program has persistence points, these count.
PERDURE_API void perdure_trace_iteration(std::uint64_t /*iteration*/);
PERDURE_API void perdure_trace_iteration(std::uint64_t /*iteration*/) {
  const Inside inside;
  if (inside && inside->record && !inside->persists) begin_iteration(*inside, "iteration");
}

PERDURE_API void perdure_trace_end(void) {
  const Inside inside;
  if (inside && inside->record && !inside->persists) inside->record->end_loop();
}

PERDURE_API int perdure_trace_active(void) {
  return 0;
}

}  // extern "C"
