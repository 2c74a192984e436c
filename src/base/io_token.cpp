// SPDX-License-Identifier: BSD-3-Clause
#include "base/io_token.hpp"

namespace perdure {
namespace {

thread_local unsigned tokens_held = 0;

}  // namespace

bool holds_token() {
  return tokens_held > 0;
}

TokenScope::TokenScope(IoToken* token, IoKind kind) : token_(token) {
  if (token_ == nullptr) return;
  token_->acquire(kind);
  ++tokens_held;
}

TokenScope::~TokenScope() {
  if (token_ == nullptr) return;
  --tokens_held;
  token_->release();
}

}  // namespace perdure
