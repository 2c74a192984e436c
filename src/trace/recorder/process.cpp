// SPDX-License-Identifier: BSD-3-Clause
#include "trace/recorder/process.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/process_place.hpp"
#include "base/status.hpp"
#include "perdure/perdure_trace.h"
#include "trace/recorder/private_memory.hpp"

extern "C" {
PERDURE_API __thread struct perdure_trace_ways perdure_trace_ways = {{nullptr, nullptr}, 0, 0};
}

namespace perdure::trace {

__thread ThreadState thread_state = {nullptr, nullptr, false, false, 0};

namespace {

constexpr const char* variable = "PERDURE_TRACE";
constexpr const char* again_variable = "PERDURE_TRACE_STARTED_AGAIN";
constexpr int wrong_setting_exit_code = 2;
constexpr std::uint8_t destructor_rounds = 4;  // PTHREAD_DESTRUCTOR_ITERATIONS of Linux

std::uint64_t no_line = CacheFilter::empty;  // never changes
constexpr std::uint64_t always = ~std::uint64_t{0};

// Never destroyed: instrumented code may run after every destructor.
struct Process {
  Recorder* recorder = nullptr;  // null: nothing is recorded
  std::string path;
  pthread_key_t key = 0;
  pid_t number = 0;
  std::atomic<std::uint64_t> lost = 0;
};
constinit std::atomic<Process*> process = nullptr;
pthread_once_t once = PTHREAD_ONCE_INIT;

void say(const std::string& what) {
  const std::string line = "perdure trace: " + what + "\n";
  // Nothing can be done where stderr is closed.
  [[maybe_unused]] const ssize_t count = ::write(STDERR_FILENO, line.data(), line.size());
}

[[noreturn]] void refuse(const Status& status) {
  say(status.message());
  ::syscall(SYS_exit_group, wrong_setting_exit_code);
  std::abort();
}

// Returns only where addresses are fixed already, or can't be.
void fix_addresses() {
  const bool is_second = !environment(again_variable).empty();
  ::unsetenv(again_variable);
  const int before = ::personality(0xffffffff);
  if (before < 0 || (before & ADDR_NO_RANDOMIZE) != 0) return;
  if (!is_second && ::personality(static_cast<unsigned long>(before) | ADDR_NO_RANDOMIZE) >= 0 &&
      (::personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0) {
    std::vector<std::string> words = command_words();
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::setenv(again_variable, "1", 1);
    char program[PATH_MAX] = {};  // by its name, or the process would be called "exe"
    if (::readlink("/proc/self/exe", program, sizeof program - 1) > 0) {
      ::execv(program, arguments.data());
    }
    ::unsetenv(again_variable);
  }
  say("addresses can't be fixed here (" + std::string(std::strerror(errno)) +
      "): traces of two runs will differ a little");
}

void describe_program(RecorderOptions& options) {
  Header& header = options.header;
  const ProcessPlace place = place_of_environment();
  header.rank = place.rank;
  header.ranks = place.ranks;
  if (!options.times) header.created_ns = 1;
  header.command = listed(command_words(), {}, " ");
}

void set_cache(Stream* stream) {
  thread_state.path = nullptr;
  if (stream == nullptr) {
    perdure_trace_ways = {{&no_line, &no_line}, 0, always};
    return;
  }
  const Header& header = process.load()->recorder->header();
  CacheFilter& filter = stream->filter();
  constexpr std::uint64_t line_bytes = std::uint64_t{1} << PERDURE_TRACE_LINE_SHIFT;
  if (header.mode == FilterMode::none || header.cache.line_bytes != line_bytes) {
    perdure_trace_ways = {{&no_line, &no_line}, 0, line_bytes - 1};  // all go to the filter itself
    return;
  }
  perdure_trace_ways = {{filter.read_entries(), filter.write_entries()},
                        filter.set_mask() * sizeof(std::uint64_t),
                        line_bytes - 1};
  if (header.mode == FilterMode::paper && header.cache.ways == 1) {
    thread_state.path = &stream->path();
  }
}

bool is_helper_used(HelperUse request) {
  cpu_set_t processors;
  if (request != HelperUse::automatic) return request == HelperUse::on;
  return ::sched_getaffinity(0, sizeof processors, &processors) == 0 && CPU_COUNT(&processors) > 1;
}

void begin_recording(Process& self, const std::string& request) {
  auto options = parse_recorder_options(request);
  if (!options.ok()) refuse(options.status());
  if (!options.value().keep_random_addresses) fix_addresses();
  describe_program(options.value());
  const Header& header = options.value().header;
  self.path = expand_path(options.value().path, static_cast<std::uint64_t>(self.number),
                          {.rank = header.rank, .ranks = header.ranks});
  auto recorder = Recorder::create(options.value(), self.path);
  if (!recorder.ok()) refuse(recorder.status());
  self.recorder = recorder.take().release();
  // Nothing of the helper is recorded, if it came to run the program's code (its malloc, perhaps).
  self.recorder->start_helper(is_helper_used(options.value().helper), [] {
    thread_state.has_ended = true;
    set_cache(nullptr);
  });
}

// The destructors of other keys, and of C++, may still make accesses: it waits for the last round.
void end_thread(void* self) {
  if (++thread_state.rounds < destructor_rounds) {
    pthread_setspecific(process.load()->key, self);
    return;
  }
  Stream* stream = thread_state.stream;
  thread_state = {nullptr, nullptr, true, true, 0};
  set_cache(nullptr);
  if (stream != nullptr) process.load()->recorder->end_thread(*stream);
  thread_state.busy = false;
}

void before_fork() {
  thread_state.busy = true;
  process.load()->recorder->lock();
  lock_private_memory();
}
void after_fork() {
  unlock_private_memory();
  process.load()->recorder->unlock();
  thread_state.busy = false;
}
void after_fork_in_child() {
  Process& self = *process.load();
  unlock_private_memory();
  self.recorder->abandon();
  self.recorder->unlock();
  self.recorder = nullptr;
  thread_state = {nullptr, nullptr, false, true, 0};
  set_cache(nullptr);
}

void finish() {
  Process* self = process.load();
  if (self == nullptr || self->recorder == nullptr || ::getpid() != self->number) return;
  if (thread_state.busy) {
    say(self->path + ": the program ended inside of the recorder; its trace has no end");
    return;
  }
  thread_state.busy = true;
  const Status status = self->recorder->finish();
  if (!status.ok()) say(status.message() + "; the trace is not complete");
  if (const std::uint64_t lost = self->lost.exchange(0); lost != 0) {
    say(self->path + ": " + std::to_string(lost) + " accesses of signal handlers are not in it");
  }
  thread_state.busy = false;
}

void start() {
  alignas(Process) static std::byte place[sizeof(Process)];
  auto* self = new (place) Process;
  self->number = ::getpid();
  say_unknown_variables();
  const std::string request = environment(variable);
  if (!request.empty()) {
    begin_recording(*self, request);
    pthread_key_create(&self->key, end_thread);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    ::at_quick_exit(finish);
  }
  process = self;
}

[[gnu::constructor(101)]] void start_process() {
  perdure_trace_thread_start();
}
[[gnu::destructor(101)]] void finish_process() {
  finish();
}

// Runs `change` with the recorder, if there is one, and tells why it failed.
template <typename Change>
void change_region(Change change) {
  perdure_trace_thread_start();
  Process& self = *process.load();
  if (self.recorder == nullptr || thread_state.busy) return;
  thread_state.busy = true;
  const Status status = change(*self.recorder);
  if (!status.ok()) say(self.path + ": " + status.message() + "; the call is ignored");
  thread_state.busy = false;
}

}  // namespace

Stream* begin_stream() {
  perdure_trace_thread_start();
  return thread_state.stream;
}

void count_lost() {
  ++process.load()->lost;
}

}  // namespace perdure::trace

extern "C" {

PERDURE_API void perdure_trace_thread_start() {
  using namespace perdure::trace;
  if (perdure_trace_ways.entries[0] != nullptr || thread_state.busy) return;
  thread_state.busy = true;
  pthread_once(&once, start);
  Process& self = *process.load();
  if (self.recorder != nullptr && !thread_state.has_ended) {
    thread_state.stream = &self.recorder->begin_thread();
    pthread_setspecific(self.key, &thread_state);
  }
  set_cache(thread_state.stream);
  thread_state.busy = false;
}

PERDURE_API void perdure_trace_begin(const char* name) {
  perdure::trace::change_region([&](auto& recorder) { return recorder.begin_region(name); });
}

PERDURE_API void perdure_trace_end() {
  perdure::trace::change_region([](auto& recorder) { return recorder.end_region(); });
}

PERDURE_API int perdure_trace_active() {
  perdure_trace_thread_start();
  const auto* process = perdure::trace::process.load();
  return process != nullptr && process->recorder != nullptr ? 1 : 0;
}

// In front of libc's, so that the trace has its end.
PERDURE_API void _exit(int code) {
  perdure::trace::finish();
  for (;;) ::syscall(SYS_exit_group, code);
}

PERDURE_API void _Exit(int code) {
  _exit(code);
}

}  // extern "C"
