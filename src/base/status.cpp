// SPDX-License-Identifier: BSD-3-Clause
#include "base/status.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace perdure {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "perdure: internal error: %s does not hold at %s:%d\n", expression, file,
               line);
  std::abort();
}

const char* code_text(Code code) {
  switch (code) {
    case Code::ok:
      return "success";
    case Code::invalid_argument:
      return "invalid argument";
    case Code::wrong_state:
      return "call not allowed in this state";
    case Code::not_found:
      return "not found";
    case Code::io_error:
      return "input/output error";
    case Code::no_space:
      return "no space";
    case Code::busy:
      return "pool is in use by another process";
    case Code::foreign:
      return "pool belongs to another job or rank";
    case Code::rank_mismatch:
      return "number of ranks differs from the pool's";
    case Code::shape_mismatch:
      return "type, shape or mode differs from the pool's";
    case Code::damaged:
      return "pool is damaged";
    case Code::newer_format:
      return "pool was written by a newer version of Perdure";
    case Code::unsupported:
      return "not supported here";
    case Code::peer_failed:
      return "another rank failed";
  }
  return "unknown error code";
}

void SentencePart::append_to(std::string& sentence) const {
  if (!is_number_) {
    sentence += text_;
    return;
  }
  if (is_negative_) sentence += '-';
  sentence += std::to_string(magnitude_);
}

std::string joined(std::initializer_list<SentencePart> parts) {
  std::string sentence;
  for (const SentencePart& part : parts) part.append_to(sentence);
  return sentence;
}

Status::Status(Code code, std::string message) : failure_(new Failure{code, std::move(message)}) {
  PERDURE_ASSERT(code != Code::ok);
}

const std::string& Status::message() const {
  static const std::string none;
  return ok() ? none : failure_->message;
}

void Status::Forget::operator()(const Failure* failure) const {
  delete failure;
}

const Status::Failure* Status::copy_of(const Failure& failure) {
  return new Failure(failure);
}

Status errno_status(const std::string& what, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  return {full ? Code::no_space : Code::io_error, what + ": " + std::strerror(error_number)};
}

Status newer_format(const std::string& name, std::uint64_t format, std::uint64_t newest) {
  return Status(Code::newer_format, name, " has format ", format, ", this Perdure reads up to ",
                newest, "; use the version that wrote it, or a newer one");
}

}  // namespace perdure
