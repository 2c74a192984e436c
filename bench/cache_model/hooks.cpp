// SPDX-License-Identifier: BSD-3-Clause
//
// The cache model of `perdure bench ipv`: the library that is linked with a program which the pass
// `trace` has instrumented. It simulates a first and a last level of cache for every access of the
// program, and of the runtime where that moves the program's values (redirected.cpp).
//
// What tells the versions of an array apart is the memory that an address shows at the moment, not
// the address: mmap() is followed (page_map.hpp). Physical pages are taken to lie in the order of
// the file, or of the addresses; there is one core and no prefetching (cache_levels.hpp). Lines
// that the first level drops do not count as uses of the last one, as in Valgrind's cachegrind.
// The runtime's own parts:
//
//   copy past the caches   reads its source through them; the destination leaves them
//   memcpy                 reads and writes through them
//   flush                  keeps its lines, as clwb does; or they leave, as with clflush
//   its bookkeeping        (bits of lines, the commit) is not seen
//
// Of the lines that the pool's files are asked for and get back only those count that caches need
// and put out: what copies, flushes and stores past the caches write there is the device's count.
//
// PERDURE_CACHE_MODEL=report=FILE,first=BYTES:WAYS,last=BYTES:WAYS,front=BYTES:WAYS,
// flush=keeps|evicts,warm=N,measured=M: counts the iterations N+1 to N+M, writes FILE, one JSON
// object, when they are done, and ends the program; front: DRAM in front of the pool's files.
// Without the variable nothing is simulated. Views must be mapped, not moved:
// PERDURE_IPV=remap=off.
//
// Threads: the one that runs first is simulated; others are let through. Failure: a wrong variable
// ends the program with exit code 2 and a sentence.
#include <sys/mman.h>
#include <sys/stat.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache_levels.hpp"
#include "cache_model.h"
#include "perdure/perdure_trace_abi.h"

namespace perdure::cache_model {
namespace {

struct Settings {
  std::string report;
  Shape first{std::uint64_t{32} << 10U, 8};  // the in-place-versioning paper's Xeon E5-2630 v3
  Shape last{std::uint64_t{20} << 20U, 20};
  std::optional<Shape> front;
  bool flush_evicts = false;
  std::uint64_t warm = 2;
  std::uint64_t measured = 1;
};

enum Who : unsigned { program, runtime };

class Model {
 public:
  explicit Model(Settings settings)
      : settings_(std::move(settings)), levels_(settings_.first, settings_.last, settings_.front) {}

  // Each line that the bytes lie in, once.
  void access(std::uint64_t address, std::uint64_t bytes, Who who, bool store) {
    if (!counts_now_) return;
    for_each_line(address, bytes,
                  [&](std::uint64_t line) { levels_.touch(line, store, counts_[who]); });
  }

  void stored_past(std::uint64_t address, std::uint64_t bytes) {
    if (!counts_now_) return;
    for_each_line(address, bytes, [&](std::uint64_t line) { levels_.store_past(line); });
  }

  void flushed(std::uint64_t address, std::uint64_t bytes) {
    if (!counts_now_) return;
    for_each_line(address, bytes,
                  [&](std::uint64_t line) { levels_.flush(line, settings_.flush_evicts); });
  }

  void mapped(std::uint64_t begin, std::uint64_t bytes, int flags, int fd, std::uint64_t offset) {
    const std::uint64_t end = (begin + bytes + 4095) & ~std::uint64_t{4095};
    const bool shared = (flags & MAP_TYPE) != MAP_PRIVATE && (flags & MAP_ANONYMOUS) == 0;
    if (shared) {
      map_.show(begin, end, PageMap::file_memory(number_of(fd), offset));
    } else {
      map_.clear(begin, end);
    }
  }
  void unmapped(std::uint64_t begin, std::uint64_t bytes) { map_.clear(begin, begin + bytes); }

  void begin() { counts_now_ = true; }
  // `number` begins; they count from 1.
  void iteration(std::uint64_t number) {
    if (number == settings_.warm + 1) {
      for (Counts& counts : counts_) counts = {};
      levels_.count_file_lines_anew();
    } else if (number == settings_.warm + settings_.measured + 1) {
      write_report();
      std::_Exit(0);
    }
  }

 private:
  template <typename Each>
  void for_each_line(std::uint64_t address, std::uint64_t bytes, const Each& each) {
    if (bytes == 0) return;
    const std::uint64_t last = (address + bytes - 1) >> line_shift;
    for (std::uint64_t line = address >> line_shift; line <= last; ++line) {
      each(map_.memory_at(line << line_shift) >> line_shift);
    }
  }

  std::size_t number_of(int fd) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) return files_.size();
    const std::pair<std::uint64_t, std::uint64_t> file{status.st_dev, status.st_ino};
    std::size_t number = 0;
    while (number < files_.size() && files_[number] != file) ++number;
    if (number == files_.size()) files_.push_back(file);
    return number;
  }

  void write_report() const {
    std::FILE* file = std::fopen(settings_.report.c_str(), "w");
    if (file == nullptr) {
      std::fprintf(stderr, "cache model: %s can't be written\n", settings_.report.c_str());
      std::exit(2);
    }
    std::fprintf(file, "{\"iterations\": %" PRIu64 "", settings_.measured);
    const char* names[] = {"program", "runtime"};
    for (const Who who : {program, runtime}) {
      const Counts& counts = counts_[who];
      std::fprintf(file,
                   ", \"%s\": {\"lines\": %" PRIu64 ", \"first_misses\": %" PRIu64
                   ", \"last_misses\": %" PRIu64 "}",
                   names[who], counts.lines, counts.first_misses, counts.last_misses);
    }
    const FileLines& lines = levels_.file_lines();
    std::fprintf(file,
                 ", \"pool\": {\"loaded\": %" PRIu64 ", \"put_out\": %" PRIu64
                 ", \"flushed_clean\": %" PRIu64 "}}\n",
                 lines.loaded, lines.put_out, lines.flushed_clean);
    std::fclose(file);
  }

  Settings settings_;
  CacheLevels levels_;
  PageMap map_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> files_;  // device and number
  Counts counts_[2];
  bool counts_now_ = false;
};

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "PERDURE_CACHE_MODEL: %s\n", what.c_str());
  std::exit(2);
}

Shape parse_shape(const std::string& text) {
  Shape shape;
  int end = 0;
  const int read =
      std::sscanf(text.c_str(), "%" SCNu64 ":%" SCNu64 "%n", &shape.size_bytes, &shape.ways, &end);
  if (read != 2 || static_cast<std::size_t>(end) != text.size() ||
      !LineCache::fits(shape.size_bytes, shape.ways)) {
    refuse(text + " is no BYTES:WAYS of a cache with 2^n sets of 64-byte lines, such as 32768:8");
  }
  return shape;
}

std::uint64_t parse_count(const std::string& text) {
  char* end = nullptr;
  const std::uint64_t count = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') refuse("'" + text + "' is no number of iterations");
  return count;
}

void parse_word(const std::string& word, Settings& settings) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  const std::string value = equals == word.npos ? "" : word.substr(equals + 1);
  if (key == "report") {
    settings.report = value;
  } else if (key == "first") {
    settings.first = parse_shape(value);
  } else if (key == "last") {
    settings.last = parse_shape(value);
  } else if (key == "front") {
    settings.front = parse_shape(value);
  } else if (key == "flush" && (value == "keeps" || value == "evicts")) {
    settings.flush_evicts = value == "evicts";
  } else if (key == "warm") {
    settings.warm = parse_count(value);
  } else if (key == "measured") {
    settings.measured = parse_count(value);
  } else {
    refuse("'" + word + "' is none of report=FILE, first=, last=, front=, flush=keeps or " +
           "evicts, warm=, measured=");
  }
}

Settings parse(const std::string& text) {
  Settings settings;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parse_word(text.substr(at, end - at), settings);
    at = end + 1;
  }
  if (settings.report.empty()) refuse("report=FILE is missing");
  return settings;
}

// Null: nothing is simulated. Never destroyed, as what runs last is instrumented, too.
Model* model() {
  static Model* const made = [] {
    const char* text = std::getenv("PERDURE_CACHE_MODEL");
    return text == nullptr || *text == '\0' ? nullptr : new Model(parse(text));
  }();
  return made;
}

std::uint64_t no_entry = LineCache::empty;
thread_local bool simulated = false;

void load(std::uint64_t address, std::uint64_t bytes, Who who) {
  if (simulated) model()->access(address, bytes, who, false);
}
void store(std::uint64_t address, std::uint64_t bytes, Who who) {
  if (simulated) model()->access(address, bytes, who, true);
}

std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// A copy that instrumented code has announced; the memcpy() that makes it is seen as well.
struct Copy {
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Copy&) const = default;
};
thread_local Copy announced;

void copy_through(const Copy& copy, Who who) {
  constexpr std::uint64_t step = std::uint64_t{1} << line_shift;
  for (std::uint64_t at = 0; at < copy.bytes; at += step) {
    const std::uint64_t bytes = std::min(step, copy.bytes - at);
    load(copy.from + at, bytes, who);
    store(copy.to + at, bytes, who);
  }
}

template <typename Access>
void for_lanes(std::uint64_t address, std::uint64_t element_bytes, std::uint64_t lanes,
               const Access& access) {
  for (; lanes != 0; lanes >>= 1U, address += element_bytes) {
    if ((lanes & 1U) != 0) access(address, element_bytes, program);
  }
}

}  // namespace
}  // namespace perdure::cache_model

using namespace perdure::cache_model;

extern "C" {

PERDURE_TRACE_THREAD_LOCAL struct perdure_trace_ways perdure_trace_ways;

// Every access misses the one entry, and so comes here; or none, where nothing is simulated.
void perdure_trace_thread_start() {
  static bool begun = false;
  simulated = model() != nullptr && !std::exchange(begun, true);
  perdure_trace_ways = {{&no_entry, &no_entry}, 0, simulated ? 0 : ~std::uint64_t{0}};
}

void perdure_cache_model_loaded(std::uint64_t address, std::uint64_t bytes) {
  load(address, bytes, program);
}
void perdure_cache_model_stored(std::uint64_t address, std::uint64_t bytes) {
  store(address, bytes, program);
}

void perdure_trace_read_lanes(std::uint64_t address, std::uint64_t bytes, std::uint64_t lanes) {
  for_lanes(address, bytes, lanes, load);
}
void perdure_trace_write_lanes(std::uint64_t address, std::uint64_t bytes, std::uint64_t lanes) {
  for_lanes(address, bytes, lanes, store);
}

void perdure_trace_copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  announced = {to, from, bytes};
  copy_through(announced, program);
}

// The markers of the main loop (apps/npb/region.hpp).
void perdure_trace_begin(const char* /*name*/) {
  if (model() != nullptr) model()->begin();
}
void perdure_trace_iteration(std::uint64_t iteration) {
  if (model() != nullptr) model()->iteration(iteration);
}
void perdure_trace_end() {}

void perdure_cache_model_copied(const void* to, const void* from, std::size_t bytes) {
  const Copy copy{number(to), number(from), bytes};
  if (simulated && std::exchange(announced, Copy{}) != copy) copy_through(copy, runtime);
}
void perdure_cache_model_read(const void* address, std::size_t bytes) {
  load(number(address), bytes, runtime);
}
void perdure_cache_model_stored_past(const void* address, std::size_t bytes) {
  if (simulated) model()->stored_past(number(address), bytes);
}
void perdure_cache_model_flushed(const void* address, std::size_t bytes) {
  if (simulated) model()->flushed(number(address), bytes);
}
void perdure_cache_model_mapped(const void* address, std::size_t bytes, int flags, int fd,
                                std::uint64_t offset) {
  if (model() != nullptr) model()->mapped(number(address), bytes, flags, fd, offset);
}
void perdure_cache_model_unmapped(const void* address, std::size_t bytes) {
  if (model() != nullptr) model()->unmapped(number(address), bytes);
}

}  // extern "C"
