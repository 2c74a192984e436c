// SPDX-License-Identifier: BSD-3-Clause
//
// Token: what who writes to a device, or reads from it, asks first, so that not all processes of a
// node do so at a time.
//
// A token is held around local work only: never in a call that waits for other ranks, as those may
// wait for the token. TokenScope says so to agree() and its like, which assert it.
//
// Threads: acquire and release come from the same thread; a token is used by one at a time.
// Failure: none; who gets no token goes ahead (energy/tokens.hpp).
#pragma once

#include <cstdint>

namespace perdure {

enum class IoKind : std::uint8_t { read, write };

class IoToken {
 public:
  IoToken() = default;
  IoToken(const IoToken&) = delete;
  IoToken& operator=(const IoToken&) = delete;
  virtual ~IoToken() = default;
  virtual void acquire(IoKind kind) = 0;
  virtual void release() = 0;
};

// Whether this thread is in a TokenScope.
bool holds_token();

// Holds `token`, which may be null, until its end.
class TokenScope {
 public:
  TokenScope(IoToken* token, IoKind kind);
  ~TokenScope();
  TokenScope(const TokenScope&) = delete;
  TokenScope& operator=(const TokenScope&) = delete;

 private:
  IoToken* token_;
};

}  // namespace perdure
