// SPDX-License-Identifier: BSD-3-Clause
//
// Redundancy: what any pattern of lost members leaves gives their images back, bit by bit, or is
// known not to.
#include "levels/redundancy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/thread_group.hpp"
#include "levels/coding.hpp"
#include "levels/encode.hpp"
#include "levels/guard_contents.hpp"
#include "levels/testing/level_fixture.hpp"
#include "levels/testing/rendezvous_group.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t chunk = sealed_chunk_bytes;
constexpr std::uint64_t room = 16 * chunk;

std::vector<std::uint32_t> first_ranks(std::uint32_t count) {
  std::vector<std::uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0U);
  return ranks;
}

// A failure group of ranks 0 to g - 1 with their images and guards.
struct FailureGroup {
  FailureGroup(std::uint32_t size, std::uint32_t rows, std::vector<std::uint64_t> lengths,
               std::uint64_t version = 5)
      : FailureGroup(Scheme{size, rows}, std::move(lengths), version) {}
  FailureGroup(const Scheme& its, std::vector<std::uint64_t> lengths, std::uint64_t version = 5)
      : members(first_ranks(its.group_size)), scheme(its) {
    for (const std::uint32_t rank : members) {
      payloads.push_back(bytes_of(lengths[rank % lengths.size()], 100 * version + rank));
      const LevelFileName image{SealedKind::image, rank, 0};
      images.push_back(file_in_memory(image, room));
      const auto header = level_header(image, size(), version, payloads.back().size());
      EXPECT_TRUE(fill(images.back(), header, payloads.back()).ok());
      guards.push_back(file_in_memory({SealedKind::guard, rank, 0}, room));
    }
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(members.size()); }

  // Each rank in a thread of its own.
  void exchange() {
    run_by_rendezvous(size(), [this](Group& group) {
      const std::uint32_t rank = group.rank();
      auto exchange = Exchange::start(group, members, scheme, images[rank], guards[rank]).take();
      for (;;) {
        const auto done = exchange->advance(chunk);
        ASSERT_TRUE(done.ok()) << done.status().message();
        if (done.value()) break;
        std::this_thread::yield();
      }
    });
  }

  // Members whose bits are set lost their files.
  GroupFiles without(std::uint32_t lost) const {
    GroupFiles files{guard_contents(guards[0]).take(), members, members};
    for (std::uint32_t member = 0; member < size(); ++member) {
      if ((lost >> member & 1U) != 0) files.image_at[member] = files.guard_at[member] = no_rank;
    }
    return files;
  }

  std::vector<std::uint32_t> members;
  Scheme scheme;
  std::vector<Bytes> payloads;
  std::vector<LevelFile> images;
  std::vector<LevelFile> guards;
};

// What each rank of a job was left with by a rebuild.
struct Rebuilt {
  std::vector<Status> statuses;
  std::vector<LevelFile> images;  // by the place in `lost`
};

// Rank r has the files that `files` says, and rebuilders[i] rebuilds lost[i].
Rebuilt rebuild(const FailureGroup& from, const GroupFiles& files,
                const std::vector<std::uint32_t>& lost,
                const std::vector<std::uint32_t>& rebuilders, std::uint32_t ranks) {
  Rebuilt rebuilt;
  rebuilt.statuses.resize(ranks);
  for (const std::uint32_t member : lost) {
    const LevelFileName name{SealedKind::image, member, 1};
    rebuilt.images.push_back(file_in_memory(name, room));
    EXPECT_TRUE(rebuilt.images.back().begin(from.payloads[member].size()).ok());
  }
  run_by_rendezvous(ranks, [&](Group& group) {
    std::vector<HeldFile> own;
    for (const std::uint32_t member : from.members) {
      if (files.image_at[member] == group.rank()) own.push_back({member, &from.images[member]});
      if (files.guard_at[member] == group.rank()) {
        own.push_back({member, nullptr, &from.guards[member]});
      }
    }
    LevelFile* image = nullptr;
    std::uint32_t member = 0;
    for (std::size_t i = 0; i < lost.size(); ++i) {
      if (rebuilders[i] != group.rank()) continue;
      image = &rebuilt.images[i];
      member = lost[i];
    }
    Status status = rebuild_images(group, files, lost, rebuilders, own, image);
    if (status.ok() && image != nullptr) {
      status = image->complete(level_header({SealedKind::image, member, 1}, from.size(), 5,
                                            from.payloads[member].size()));
    }
    rebuilt.statuses[group.rank()] = status;
  });
  return rebuilt;
}

void expect_rebuilt(const FailureGroup& from, const Rebuilt& rebuilt,
                    const std::vector<std::uint32_t>& lost, const std::string& text) {
  for (const Status& status : rebuilt.statuses)
    ASSERT_TRUE(status.ok()) << status.message() << text;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    ASSERT_TRUE(rebuilt.images[i].whole()) << text;
    ASSERT_EQ(bytes_in(rebuilt.images[i]), from.payloads[lost[i]]) << text;
  }
}

std::vector<std::uint32_t> bits_of(std::uint32_t pattern) {
  std::vector<std::uint32_t> bits;
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    if ((pattern >> bit & 1U) != 0) bits.push_back(bit);
  }
  return bits;
}

const std::vector<std::uint64_t> odd_lengths{3 * chunk + chunk / 2, 0,         1,
                                             chunk + 777,           2 * chunk, 63};

// What a set of lost members leaves is rebuilt, if it gives their images. Returns whether it does.
bool check_pattern(const FailureGroup& group, std::uint32_t pattern) {
  const std::string text = " with " + group.scheme.text() + ", lost " + std::to_string(pattern);
  const auto lost = bits_of(pattern);
  const GroupFiles files = group.without(pattern);
  std::vector<std::uint32_t> given;
  for (const std::uint32_t member : lost) {
    if (files.can_rebuild(member)) given.push_back(member);
  }
  const bool within = lost.size() <= group.scheme.losses();
  EXPECT_TRUE(!within || given == lost) << text;
  if (!given.empty()) {
    expect_rebuilt(group, rebuild(group, files, given, given, group.size()), given, text);
  }
  return given == lost;
}

// All patterns of one scheme; returns how many it bears.
std::uint32_t check_every_pattern(const Scheme& scheme, const std::vector<std::uint64_t>& lengths) {
  FailureGroup group(scheme, lengths);
  group.exchange();
  for (std::uint32_t member = 0; member < group.size(); ++member) {
    const auto contents = guard_contents(group.guards[member]);
    EXPECT_TRUE(contents.ok()) << contents.status().message();
    if (!contents.ok()) return 0;
    EXPECT_EQ(contents.value().members, group.members);
    EXPECT_EQ(contents.value().scheme(), scheme);
    EXPECT_EQ(contents.value().image_bytes[member], group.payloads[member].size());
    EXPECT_EQ(contents.value().image_checksums[member], group.images[member].table_checksum());
    EXPECT_TRUE(group.guards[member].verify().ok());
    EXPECT_EQ(group.guards[member].header().id, group.images[member].header().id);
  }
  std::uint32_t borne = 0;
  for (std::uint32_t pattern = 1; pattern < 1U << group.size(); ++pattern) {
    if (check_pattern(group, pattern)) ++borne;
  }
  return borne;
}

// How many sets of at most `losses` members there are.
std::uint32_t sets_of(std::uint32_t size, std::uint32_t losses) {
  std::uint32_t sets = 0;
  for (std::uint32_t pattern = 1; pattern < 1U << size; ++pattern) {
    if (bits_of(pattern).size() <= losses) ++sets;
  }
  return sets;
}

TEST(Redundancy, every_pattern_of_losses_within_the_scheme_is_rebuilt) {
  for (std::uint32_t size = 2; size <= 6; ++size) {
    for (std::uint32_t rows = 1; rows < size; ++rows) {
      const Scheme scheme{size, rows};
      EXPECT_EQ(check_every_pattern(scheme, {200, 0, 1, 64, 777, 63}), sets_of(size, rows));
      if (size <= 4 || rows == 2) (void)check_every_pattern(scheme, odd_lengths);
    }
  }
}

// Also of one that was added since; what a scheme bears beside its losses is its own.
TEST(Redundancy, the_examples_of_every_coding_are_rebuilt) {
  for (const Coding* const coding : codings()) {
    for (const std::string& name : coding->examples()) {
      const auto scheme = parse_scheme(name);
      ASSERT_TRUE(scheme.ok()) << scheme.status().message();
      EXPECT_EQ(scheme.value().text(), name);
      EXPECT_EQ(scheme.value().coding, coding->number()) << name;
      const std::uint32_t size = scheme.value().group_size;
      const std::uint32_t least = sets_of(size, scheme.value().losses());
      EXPECT_GE(check_every_pattern(scheme.value(), {chunk + 777, 0, 64}), least) << name;
      EXPECT_GE(scheme.value().losses(), 1U);
      EXPECT_LE(scheme.value().losses(), scheme.value().rows);
    }
  }
}

TEST(Redundancy, codings_have_numbers_of_their_own) {
  for (const Coding* const coding : codings()) EXPECT_EQ(coding_of(coding->number()), coding);
  EXPECT_NE(coding_of(0), nullptr);
  EXPECT_EQ(coding_of(UINT32_MAX), nullptr);
}

TEST(Redundancy, what_is_lost_is_a_sum_of_what_is_there) {
  const Coding& coding = *coding_of(0);
  std::mt19937_64 dice(test_seed());
  for (int round = 0; round < 200; ++round) {
    const auto columns = static_cast<std::uint32_t>(1 + dice() % 6);
    const auto rows = static_cast<std::uint32_t>(1 + dice() % 4);
    std::vector<std::uint32_t> blocks(columns + rows);
    std::iota(blocks.begin(), blocks.end(), 0U);
    std::shuffle(blocks.begin(), blocks.end(), dice);
    const auto lost = static_cast<std::uint32_t>(dice() % columns);
    std::erase(blocks, lost);
    blocks.resize(dice() % blocks.size() + 1);
    const auto terms = recover(coding, columns, rows, lost, blocks);
    ASSERT_EQ(terms.has_value(), blocks.size() >= columns);
    ASSERT_EQ(can_recover(coding, columns, rows, lost, blocks), terms.has_value());
    if (!terms) continue;
    std::vector<unsigned> sum(columns, 0);
    for (const Term& term : *terms) {
      for (std::uint32_t column = 0; column < columns; ++column) {
        const unsigned its = term.block < columns
                                 ? (term.block == column ? 1 : 0)
                                 : coding.coefficient(columns, rows, term.block - columns, column);
        sum[column] ^= field_product(term.coefficient, static_cast<unsigned char>(its));
      }
    }
    std::vector<unsigned> wanted(columns, 0);
    wanted[lost] = 1;
    ASSERT_EQ(sum, wanted);
  }
}

TEST(Redundancy, images_without_bytes_are_guarded_and_rebuilt) {
  EXPECT_EQ(check_every_pattern({3, 1}, {0}), 3U);
}

TEST(Redundancy, a_partner_keeps_a_copy_and_one_of_three_a_sum_without_carry) {
  FailureGroup pair(2, 1, {chunk + 5, chunk + 1});
  pair.exchange();
  const Bytes copy = bytes_in(pair.guards[0]);
  EXPECT_TRUE(std::equal(pair.payloads[1].begin(), pair.payloads[1].end(), copy.begin()));
  FailureGroup three(3, 1, {128});
  three.exchange();
  // Member 0 keeps the parity of stripe 0: segment 1 of member 1, segment 0 of member 2.
  const auto sum = three.guards[0].payload();
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(sum[i], three.payloads[1][64 + i] ^ three.payloads[2][i]);
  }
}

// What is shorter is padded with zeros, also where a longer message was received before.
TEST(Redundancy, a_partners_copy_of_a_shorter_image_ends_with_zeros) {
  FailureGroup pair(2, 1, {6 * chunk + 7, 4 * chunk + 9});
  pair.exchange();
  for (const std::uint32_t other : {0U, 1U}) {
    Bytes expected = pair.payloads[other];
    expected.resize(align_up(6 * chunk + 7, 64));
    Bytes copy = bytes_in(pair.guards[1 - other]);
    ASSERT_GE(copy.size(), expected.size());
    copy.resize(expected.size());
    EXPECT_TRUE(copy == expected) << other;
  }
}

TEST(Redundancy, room_for_a_guard_is_known_before_the_exchange) {
  for (const Scheme& scheme : {Scheme{2, 1}, Scheme{5, 1}, Scheme{5, 2}, Scheme{4, 3}}) {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{5}, 2 * chunk + 100}) {
      FailureGroup group(scheme, {bytes});
      group.exchange();
      EXPECT_EQ(guard_bytes(group.members, scheme, bytes), bytes_in(group.guards[0]).size())
          << scheme.text();
    }
  }
}

// As docs/format.md says it, bit by bit.
unsigned product(unsigned a, unsigned b) {
  unsigned result = 0;
  for (; b != 0; b >>= 1U) {
    if ((b & 1U) != 0) result ^= a;
    a = (a << 1U) ^ ((a & 0x80U) != 0 ? 0x11dU : 0U);
  }
  return result;
}

unsigned inverse(unsigned a) {
  unsigned b = 1;
  while (product(a, b) != 1) ++b;
  return b;
}

TEST(Redundancy, parity_is_what_the_format_says_it_is) {
  for (std::uint32_t columns = 1; columns <= 6; ++columns) {
    for (std::uint32_t rows = 1; rows <= 5; ++rows) {
      for (std::uint32_t row = 0; row < rows; ++row) {
        const Sum sum = parity_sum(*coding_of(0), columns, rows, row);
        for (const std::size_t length : {1U, 15U, 31U, 32U, 33U, 100U, 1000U}) {
          Bytes expected(length);
          Bytes parity(length);
          for (std::uint32_t column = 0; column < columns; ++column) {
            const Bytes data = bytes_of(length, column + 1);
            sum.add(column, data, parity.data());
            const unsigned factor = rows == 1 ? 1 : inverse((columns + row) ^ column);
            for (std::size_t i = 0; i < length; ++i) {
              const auto byte = std::to_integer<unsigned>(data[i]);
              expected[i] ^= static_cast<std::byte>(product(factor, byte));
            }
          }
          ASSERT_EQ(parity, expected) << columns << "+" << rows << ", row " << row;
        }
      }
    }
  }
}

TEST(Redundancy, ranks_without_files_rebuild_from_files_that_were_moved) {
  FailureGroup group(4, 2, odd_lengths);
  group.exchange();
  GroupFiles files = group.without(0b0001);
  files.image_at = {no_rank, 3, 2, 5};
  files.guard_at = {no_rank, 4, no_rank, 4};
  // Rank 4 has no file of member 3's image but its guard; rank 6 nothing; rank 1 takes no part.
  ASSERT_TRUE(files.can_rebuild(0));
  expect_rebuilt(group, rebuild(group, files, {0}, {6}, 7), {0}, " on a spare");
  // A rebuilder that has files of others itself.
  expect_rebuilt(group, rebuild(group, files, {0}, {4}, 7), {0}, " on a rank with guards");
}

TEST(Redundancy, an_image_that_is_there_needs_no_rebuilding_however_much_is_lost) {
  FailureGroup group(3, 1, {100});
  group.exchange();
  GroupFiles files = group.without(0b110);
  EXPECT_TRUE(files.can_rebuild(0));
  EXPECT_FALSE(files.can_rebuild(1));
  // Without the guard of member 2, what is lost of member 1 alone can be computed from no stripe.
  files = group.without(0b010);
  files.guard_at[2] = no_rank;
  EXPECT_FALSE(files.can_rebuild(1));
}

// Changes a byte of the payload without the file's knowledge.
void flip(const LevelFile& file, std::uint64_t at) {
  auto* const bytes = const_cast<std::byte*>(file.payload().data());
  bytes[at] ^= std::byte{4};
}

TEST(Redundancy, damage_found_while_rebuilding_counts_as_a_loss) {
  for (const bool image : {false, true}) {
    FailureGroup group(4, 2, {chunk + 100, 5000, 70000, 3});
    group.exchange();
    flip(image ? group.images[1] : group.guards[2], 2);
    expect_rebuilt(group, rebuild(group, group.without(1), {0}, {0}, 4), {0}, " with damage");
  }
}

TEST(Redundancy, damage_beyond_the_losses_is_named_and_nothing_is_written) {
  for (const bool image : {false, true}) {
    FailureGroup group(3, 1, {chunk + 100, 5000, 70000});
    group.exchange();
    flip(image ? group.images[1] : group.guards[1], 9);
    const Rebuilt rebuilt = rebuild(group, group.without(1), {0}, {0}, 3);
    for (const Status& status : rebuilt.statuses) EXPECT_EQ(status.code(), Code::damaged);
    EXPECT_FALSE(rebuilt.images[0].whole());
    const std::string file = image ? "image-00001.0: bytes 0 to 4999" : "guard-00001.0: bytes 0 to";
    EXPECT_NE(rebuilt.statuses[1].message().find(file), std::string::npos)
        << rebuilt.statuses[1].message();
    const std::string whose = image ? "the image of rank 1" : "the guard of rank 1";
    for (const std::uint32_t rank : {0U, 2U}) {
      const std::string& message = rebuilt.statuses[rank].message();
      EXPECT_NE(message.find("the image of rank 0 can't be rebuilt"), std::string::npos) << message;
      EXPECT_NE(message.find(whose), std::string::npos) << message;
    }
  }
}

TEST(Redundancy, files_of_another_version_are_not_rebuilt_from) {
  FailureGroup group(3, 1, {5000});
  FailureGroup other(3, 1, {5000}, 6);
  group.exchange();
  other.exchange();
  for (const bool image : {false, true}) {
    FailureGroup mixed(3, 1, {5000});
    mixed.exchange();
    (image ? mixed.images : mixed.guards)[2] = std::move((image ? other.images : other.guards)[2]);
    const Rebuilt rebuilt = rebuild(mixed, group.without(1), {0}, {0}, 3);
    EXPECT_EQ(rebuilt.statuses[2].code(), Code::damaged);
    EXPECT_FALSE(rebuilt.images[0].whole());
  }
}

// The contents say which image it must be: here another one than that which was guarded.
TEST(Redundancy, a_rebuilt_image_is_compared_with_the_one_that_was_guarded) {
  FailureGroup group(2, 1, {5000});
  group.exchange();
  GuardContents contents = guard_contents(group.guards[1]).take();
  contents.image_checksums[0] ^= 1;
  Bytes payload = bytes_in(group.guards[1]);
  const auto tail = contents_bytes(contents);
  std::copy(tail.begin(), tail.end(), payload.end() - static_cast<std::ptrdiff_t>(tail.size()));
  const SealedHeader header = group.guards[1].header();
  ASSERT_TRUE(fill(group.guards[1], header, payload).ok());
  GroupFiles files{contents, {no_rank, 1}, {no_rank, 1}};
  const Rebuilt rebuilt = rebuild(group, files, {0}, {0}, 2);
  EXPECT_EQ(rebuilt.statuses[0].code(), Code::damaged);
  EXPECT_NE(rebuilt.statuses[0].message().find("not the one that was guarded"), std::string::npos);
  EXPECT_FALSE(rebuilt.images[0].whole());
}

// All ranks in one thread, which no call may hold up.
struct Ranks {
  Ranks(ThreadJob& job, FailureGroup& group) {
    for (const std::uint32_t rank : group.members) {
      groups.push_back(std::make_unique<ThreadGroup>(job, rank));
      exchanges.push_back(Exchange::start(*groups[rank], group.members, group.scheme,
                                          group.images[rank], group.guards[rank])
                              .take());
    }
  }
  std::vector<std::unique_ptr<ThreadGroup>> groups;
  std::vector<std::unique_ptr<Exchange>> exchanges;
};

TEST(Exchange, advances_in_any_order_by_any_few_bytes) {
  std::mt19937_64 random(test_seed());
  for (const Scheme& scheme : {Scheme{2, 1}, Scheme{5, 1}, Scheme{5, 2}, Scheme{4, 3}}) {
    FailureGroup expected(scheme, odd_lengths);
    expected.exchange();
    FailureGroup group(scheme, odd_lengths);
    ThreadJob job(group.size());
    Ranks ranks(job, group);
    std::uint32_t done = 0;
    for (int call = 0; call < 100000 && done != (1U << group.size()) - 1; ++call) {
      const auto rank = static_cast<std::uint32_t>(random() % group.size());
      const auto advanced = ranks.exchanges[rank]->advance(1 + random() % 3);
      ASSERT_TRUE(advanced.ok()) << advanced.status().message();
      if (advanced.value()) done |= 1U << rank;
    }
    ASSERT_EQ(done, (1U << group.size()) - 1) << scheme.text();
    for (const std::uint32_t rank : group.members) {
      EXPECT_EQ(bytes_in(group.guards[rank]), bytes_in(expected.guards[rank])) << scheme.text();
    }
  }
}

TEST(Exchange, without_room_to_post_only_looks_at_what_is_under_way) {
  FailureGroup group(2, 1, {5000});
  ThreadJob job(2);
  job.run([&](ThreadGroup& ranks) {
    auto exchange = Exchange::start(ranks, group.members, group.scheme, group.images[ranks.rank()],
                                    group.guards[ranks.rank()])
                        .take();
    for (int call = 0; call < 100; ++call) EXPECT_FALSE(exchange->advance(0).value());
  });
}

TEST(Exchange, of_a_job_that_ends_leaves_no_half_of_a_guard_and_changes_nothing_else) {
  std::mt19937_64 random(test_seed());
  std::uint32_t cut = 0;
  for (int trial = 0; trial < 40; ++trial) {
    FailureGroup group(4, 2, {2 * chunk + 9, 5, chunk, 3 * chunk});
    FailureGroup before(4, 2, {5000}, 4);
    before.exchange();
    for (std::size_t i = 0; i < 4; ++i) std::swap(group.guards[i], before.guards[i]);
    std::vector<Bytes> kept;
    for (const LevelFile& guard : before.guards) kept.push_back(bytes_in(guard));
    ThreadJob job(4);
    Ranks ranks(job, group);
    for (std::uint64_t calls = random() % 150; calls > 0; --calls) {
      ASSERT_TRUE(ranks.exchanges[random() % 4]->advance(1).ok());
    }
    job.end();
    std::array<bool, 4> whole{};
    for (const std::uint32_t rank : group.members) {
      auto done = ranks.exchanges[rank]->advance(1);
      while (done.ok() && !done.value()) done = ranks.exchanges[rank]->advance(1);
      whole[rank] = done.ok();
      if (whole[rank]) continue;
      EXPECT_EQ(done.status().code(), Code::peer_failed);
      EXPECT_EQ(ranks.exchanges[rank]->advance(1).status().code(), Code::peer_failed);
    }
    for (const std::uint32_t rank : group.members) {
      EXPECT_TRUE(group.images[rank].verify().ok());
      EXPECT_EQ(bytes_in(group.images[rank]), group.payloads[rank]);
      EXPECT_EQ(bytes_in(before.guards[rank]), kept[rank]);
      const LevelFile& guard = group.guards[rank];
      cut += guard.whole() ? 0U : 1U;
      EXPECT_TRUE(!whole[rank] || (guard.whole() && guard.header().id.version == 5));
      if (!guard.whole()) continue;
      EXPECT_TRUE(group.guards[rank].verify().ok());
      EXPECT_TRUE(guard_contents(group.guards[rank]).ok());
    }
  }
  EXPECT_GT(cut, 12U);
}

TEST(Exchange, of_different_versions_is_refused) {
  FailureGroup group(2, 1, {5000});
  FailureGroup next(2, 1, {5000}, 6);
  ThreadJob job(2);
  job.run([&](ThreadGroup& ranks) {
    LevelFile& image = ranks.rank() == 0 ? group.images[0] : next.images[1];
    LevelFile& guard = group.guards[ranks.rank()];
    auto exchange = Exchange::start(ranks, group.members, group.scheme, image, guard).take();
    for (;;) {
      const auto done = exchange->advance(chunk);
      if (done.ok()) {
        ASSERT_FALSE(done.value());
        continue;
      }
      EXPECT_EQ(done.status().code(), Code::wrong_state);
      EXPECT_NE(done.status().message().find("guards version"), std::string::npos);
      break;
    }
    EXPECT_FALSE(guard.whole());
  });
}

TEST(Exchange, needs_an_image_and_a_group_of_its_own) {
  FailureGroup group(2, 1, {5000});
  ThreadJob job(3);
  ThreadGroup rank(job, 0);
  const auto started = [&](const std::vector<std::uint32_t>& members, std::uint32_t rows,
                           const LevelFile& image) {
    return Exchange::start(rank, members, {2, rows}, image, group.guards[0]).status().code();
  };
  EXPECT_EQ(started({1, 2}, 1, group.images[0]), Code::invalid_argument);
  EXPECT_EQ(started({0, 1}, 0, group.images[0]), Code::invalid_argument);
  EXPECT_EQ(started({0, 1}, 2, group.images[0]), Code::invalid_argument);
  EXPECT_EQ(started(first_ranks(33), 1, group.images[0]), Code::invalid_argument);
  EXPECT_EQ(started({0, 1}, 1, group.guards[0]), Code::wrong_state);
}

// Every bit of what a guard says is flipped, with checksums that are right again.
TEST(GuardContents, are_not_believed_where_they_cannot_be_right) {
  FailureGroup group(3, 1, {5000, 1, 700});
  group.exchange();
  const GuardContents contents = guard_contents(group.guards[1]).take();
  const Bytes payload = bytes_in(group.guards[1]);
  const std::size_t tail = contents_bytes(contents).size();
  const SealedHeader header = group.guards[1].header();
  std::uint32_t refused = 0;
  for (std::size_t bit = 0; bit < tail * 8; ++bit) {
    Bytes flipped = payload;
    flipped[payload.size() - tail + bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    ASSERT_TRUE(fill(group.guards[1], header, flipped).ok());
    const auto read = guard_contents(group.guards[1]);
    if (!read.ok()) {
      ASSERT_EQ(read.status().code(), Code::damaged);
      ++refused;
      continue;
    }
    // What it says fits: only lengths that give the same stripes, and checksums, can be others.
    EXPECT_EQ(read.value().scheme(), contents.scheme());
    EXPECT_EQ(read.value().members, contents.members);
    EXPECT_EQ(stripes_of(read.value()).segment_bytes(), stripes_of(contents).segment_bytes());
  }
  EXPECT_GT(refused, 3 * 32 + 128 - 32);
  // Parity that is too short, or too long, for what it is said to be of.
  const auto refilled = [&](const Bytes& bytes) {
    SealedHeader other = header;
    other.payload_bytes = bytes.size();
    EXPECT_TRUE(fill(group.guards[1], other, bytes).ok());
    return guard_contents(group.guards[1]).status().code();
  };
  EXPECT_EQ(refilled({payload.begin() + 64, payload.end()}), Code::damaged);
  Bytes longer(64);
  longer.insert(longer.end(), payload.begin(), payload.end());
  EXPECT_EQ(refilled(longer), Code::damaged);
  EXPECT_EQ(refilled(payload), Code::ok);
  EXPECT_EQ(guard_contents(group.images[1]).status().code(), Code::damaged);
  Bytes little(8);
  ASSERT_TRUE(fill(group.guards[1], level_header({SealedKind::guard, 1, 0}, 3, 5, 8), little).ok());
  EXPECT_EQ(guard_contents(group.guards[1]).status().code(), Code::damaged);
}

}  // namespace
}  // namespace perdure
