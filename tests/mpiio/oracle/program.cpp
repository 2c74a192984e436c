// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <array>
#include <cstddef>

#include "../random_type.hpp"

namespace oracle {
namespace {

using mpiio_test::Draw;

struct Weight {
  Kind kind;
  int weight;
  const char* name;
};

// In the order of Kind.
constexpr std::array<Weight, kinds> weights = {{
    {Kind::open, 6, "open"},
    {Kind::close, 2, "close"},
    {Kind::choose, 4, "choose"},
    {Kind::set_view, 8, "set_view"},
    {Kind::access, 46, "access"},
    {Kind::shared, 5, "shared"},
    {Kind::ordered, 5, "ordered"},
    {Kind::seek, 6, "seek"},
    {Kind::seek_shared, 3, "seek_shared"},
    {Kind::query, 6, "query"},
    {Kind::set_size, 4, "set_size"},
    {Kind::preallocate, 2, "preallocate"},
    {Kind::settle, 6, "settle"},
    {Kind::atomicity, 2, "atomicity"},
    {Kind::hints, 2, "hints"},
    {Kind::wrong, 2, "wrong"},
    {Kind::reread, 4, "reread"},
}};

Kind draw_kind(Draw& draw) {
  int sum = 0;
  for (const Weight& one : weights) sum += one.weight;
  int drawn = draw.between(1, sum);
  for (const Weight& one : weights) {
    drawn -= one.weight;
    if (drawn <= 0) return one.kind;
  }
  return Kind::access;
}

// Around the borders of blocks, or anything.
std::int64_t draw_size(Draw& draw) {
  constexpr std::array<std::int64_t, 5> borders = {4096, 16384, 32768, 65536, 131072};
  if (draw.once_in(6)) return 0;
  if (draw.once_in(2)) return draw.between(1, 200000);
  const std::int64_t border = borders[static_cast<std::size_t>(draw.between(0, 4))];
  return border + draw.between(-3, 3);
}

std::string one_of(Draw& draw, const std::vector<std::string>& words) {
  return words[static_cast<std::size_t>(draw.between(0, static_cast<int>(words.size()) - 1))];
}

Hints draw_hints(Draw& draw) {
  Hints hints = {{"perdure_cache", "on"}};
  hints["perdure_cache_layout"] = one_of(draw, {"cyclic", "parts"});
  // A part has room for a table of as many blocks as its device could hold: small ones are slow to
  // begin with.
  hints["perdure_cache_block"] = draw.once_in(10) ? "4k" : one_of(draw, {"16k", "64k", "1m"});
  hints["perdure_cache_fetch"] = one_of(draw, {"lazy", "lazy", "open"});
  hints["perdure_cache_ack"] = one_of(draw, {"sync", "async", "sync", "durable"});
  hints["perdure_cache_sync"] = one_of(draw, {"file", "file", "nvm"});
  hints["perdure_cache_from"] = one_of(draw, {"0", "0", hint_of_rank, hint_of_rank, "never"});
  hints["perdure_cache_evict"] = one_of(draw, {"1", "2", "4", "16", "never"});
  return hints;
}

}  // namespace

const char* name_of(Kind kind) {
  return weights[static_cast<std::size_t>(kind)].name;
}

Program draw_program(std::uint64_t seed, std::uint64_t number) {
  Program program;
  program.seed = (seed + 1) * 0x9E3779B97F4A7C15U + number;
  Draw draw(program.seed);
  program.exists = !draw.once_in(4);
  program.bytes_before = program.exists ? draw_size(draw) : 0;
  program.cache = draw_hints(draw);
  program.steps.push_back({Kind::open, draw.bits()});
  for (int count = draw.between(10, 40); count > 0; --count) {
    const Kind kind = draw_kind(draw);
    program.steps.push_back({kind, draw.bits()});
  }
  return program;
}

std::string text_of(const Program& program) {
  std::string text = program.exists ? "a file of " + std::to_string(program.bytes_before) + " bytes"
                                    : std::string("no file");
  for (const auto& [key, value] : program.cache) text += "; " + key + "=" + value;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    text += "\n  " + std::to_string(i) + ": " + name_of(program.steps[i].kind) + " " +
            std::to_string(program.steps[i].seed);
  }
  return text;
}

}  // namespace oracle
