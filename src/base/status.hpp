// SPDX-License-Identifier: BSD-3-Clause
//
// Status and Result<T>: how every function of Perdure reports an expected failure.
//
// A Status is a code and a sentence. The sentence is built once, where the failure is decided,
// of its parts, and says what was observed and what to do about it:
//
//   return Status(Code::not_found, path, " holds no version of rank ", rank);
//
// Bugs are assertions (assert.hpp), never a Status. Threads: values; no shared state.
//
// Success is a null pointer, and all that failures need is out of line and cold: every caller of
// every function has a Status, and compilers spend no time on code that isn't there.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.hpp"

namespace perdure {

// The numbers are the C interface (perdure.h) and never change.
enum class Code : int {
  ok = 0,
  invalid_argument = -1,  // the caller passed something that can't be right
  wrong_state = -2,       // the call is right, but not now (for example commit before restart)
  not_found = -3,         // no such pool, array, scalar or version
  io_error = -4,          // the operating system or the device refused
  no_space = -5,          // the device, or a fixed area of the pool, is full
  busy = -6,              // another live process holds the pool
  foreign = -7,           // a pool, or a rank's file, of another job or another rank
  rank_mismatch = -8,     // the job has another number of ranks than the pool
  shape_mismatch = -9,    // an array or scalar has another type, shape or mode than the pool's
  damaged = -10,          // a checksum or an invariant of the format does not hold
  newer_format = -11,     // written by a newer Perdure
  unsupported = -12,      // this machine, kernel or file system lacks what was asked for
  peer_failed = -13,      // another rank of a collective call failed; its message is given
};

// Text, which must outlive it, or a whole number, which is written in decimal.
class SentencePart {
 public:
  SentencePart(std::string_view text) : text_(text) {}    // NOLINT(google-explicit-constructor)
  SentencePart(const std::string& text) : text_(text) {}  // NOLINT(google-explicit-constructor)
  SentencePart(const char* text) : text_(text) {}         // NOLINT(google-explicit-constructor)
  template <std::integral Number>
  SentencePart(Number number)  // NOLINT(google-explicit-constructor)
      : magnitude_(static_cast<std::uint64_t>(number)), is_number_(true), is_negative_(number < 0) {
    if (is_negative_) magnitude_ = -magnitude_;
  }
  SentencePart(char) = delete;
  SentencePart(bool) = delete;
  void append_to(std::string& sentence) const;

 private:
  std::string_view text_;
  std::uint64_t magnitude_ = 0;
  bool is_number_ = false;
  bool is_negative_ = false;
};
[[gnu::cold]] std::string joined(std::initializer_list<SentencePart> parts);
template <typename... Parts>
[[gnu::always_inline]] inline std::string sentence(const Parts&... parts) {
  return joined({SentencePart(parts)...});
}

// The elements of a list as text: "a, b, c". `as` makes text or a whole number of each.
template <typename List, typename As = std::identity>
std::string listed(const List& list, As as = {}, std::string_view between = ", ") {
  std::string text;
  for (const auto& each : list) {
    if (!text.empty()) text += between;
    SentencePart(std::invoke(as, each)).append_to(text);
  }
  return text;
}

class [[nodiscard]] Status {
 public:
  Status() = default;
  [[gnu::cold]] Status(Code code, std::string message);
  template <typename... Parts>
  [[gnu::always_inline]] Status(Code code, const Parts&... parts)
      : Status(code, joined({SentencePart(parts)...})) {}
  Status(Status&&) noexcept = default;  // leaves a success
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other) : failure_(other.ok() ? nullptr : copy_of(*other.failure_)) {}
  Status& operator=(const Status& other) { return *this = Status(other); }
  ~Status() = default;
  static Status success() { return {}; }

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return ok() ? Code::ok : failure_->code; }
  const std::string& message() const;

 private:
  struct Failure {
    Code code;
    std::string message;
  };
  struct Forget {
    [[gnu::cold]] void operator()(const Failure* failure) const;
  };
  [[gnu::cold]] static const Failure* copy_of(const Failure& failure);

  std::unique_ptr<const Failure, Forget> failure_;
};

// The short, fixed text of a code, for perdure_strerror.
const char* code_text(Code code);

// A Status whose message ends with strerror(error_number); ENOSPC, EDQUOT give no_space.
[[gnu::cold]] Status errno_status(const std::string& what, int error_number);

// Code::newer_format: `name` has a format that is newer than the newest that is known here.
[[gnu::cold]] Status newer_format(const std::string& name, std::uint64_t format,
                                  std::uint64_t newest);

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) { PERDURE_ASSERT(!status_.ok()); }  // NOLINT

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & {
    PERDURE_ASSERT(ok());
    return *value_;
  }
  const T& value() const& {
    PERDURE_ASSERT(ok());
    return *value_;
  }
  T take() {
    PERDURE_ASSERT(ok());
    return std::move(*value_);
  }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace perdure

// Error propagation: returns from the calling function when the expression failed.
#define PERDURE_TRY(expression)                                            \
  do {                                                                     \
    if (::perdure::Status try_status_ = (expression); !try_status_.ok()) { \
      return try_status_;                                                  \
    }                                                                      \
  } while (false)

// The same of a Result, whose value goes to what is declared: PERDURE_TRY_ASSIGN(auto x, read());
#define PERDURE_TRY_ASSIGN(declaration, ...) \
  PERDURE_TRY_ASSIGN_AT(declaration, __LINE__, __VA_ARGS__)
#define PERDURE_TRY_ASSIGN_AT(declaration, line, ...) \
  PERDURE_TRY_ASSIGN_TO(declaration, line, __VA_ARGS__)
#define PERDURE_TRY_ASSIGN_TO(declaration, line, ...)             \
  auto try_result_##line = (__VA_ARGS__);                         \
  if (!try_result_##line.ok()) return try_result_##line.status(); \
  declaration = try_result_##line.take()
