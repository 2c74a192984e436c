// SPDX-License-Identifier: BSD-3-Clause
//
// What is computed on a GPU: the format's own checksums, which of them changed, and stores of what
// changed to the pool. make_kernels.sh compiles this to kernels.ptx, which the driver takes as it
// is, so that no build needs CUDA: nothing is included, and all that CUDA's headers would say is
// here.
//
// A checksum is made by a warp of 32 lanes. XXH3 takes stripes of 64 bytes, 16 of them to a row,
// and all that a row adds to the eight sums is a sum over its stripes. So the lanes read a row as
// it lies, 16 bytes each, twice; lane % 4 says to which two of the eight sums its bytes belong; and
// three exchanges add up the lanes that share them. Rows come one after the other, as the sums are
// scrambled after each.

#define PERDURE_KERNEL extern "C" __attribute__((global)) __attribute__((launch_bounds(256)))
#define PERDURE_ON_GPU static __attribute__((device)) __attribute__((always_inline)) inline
#define PERDURE_UNROLL _Pragma("unroll")
#define PERDURE_ROLLED _Pragma("nounroll")

using u32 = unsigned int;
using u64 = unsigned long long;
// Two words, loaded and stored by one instruction.
using Pair = u64 __attribute__((ext_vector_type(2)));

constexpr u32 lanes = 32;
constexpr u64 page_bytes = 4096;
constexpr u64 piece_bytes = 32768;  // data_piece_bytes of base/data_checksum.hpp
constexpr u64 block_bytes = 65536;
constexpr u32 row_pairs = 1024 / sizeof(Pair);
constexpr u32 page_pairs = page_bytes / sizeof(Pair);

constexpr u64 prime32_1 = 0x9E3779B1U, prime32_2 = 0x85EBCA77U, prime32_3 = 0xC2B2AE3DU;
constexpr u64 prime64_1 = 0x9E3779B185EBCA87U, prime64_2 = 0xC2B2AE3D27D4EB4FU,
              prime64_3 = 0x165667B19E3779F9U, prime64_4 = 0x85EBCA77C2B2AE63U,
              prime64_5 = 0x27D4EB2F165667C5U;

// The 192 bytes of XXH3's own secret, as words.
__attribute__((constant)) const u64 perdure_xxh3_secret[24] = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
    0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
    0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
    0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
    0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af};

PERDURE_ON_GPU u32 thread_in_block() {
  return static_cast<u32>(__nvvm_read_ptx_sreg_tid_x());
}
PERDURE_ON_GPU u64 this_block() {
  return static_cast<u32>(__nvvm_read_ptx_sreg_ctaid_x());
}
PERDURE_ON_GPU u64 all_blocks() {
  return static_cast<u32>(__nvvm_read_ptx_sreg_nctaid_x());
}
PERDURE_ON_GPU u64 block_threads() {
  return static_cast<u32>(__nvvm_read_ptx_sreg_ntid_x());
}
PERDURE_ON_GPU u64 this_thread() {
  return this_block() * block_threads() + thread_in_block();
}
PERDURE_ON_GPU u64 all_threads() {
  return all_blocks() * block_threads();
}

// What nothing stores to while a kernel runs comes by the cache for such memory.
PERDURE_ON_GPU Pair load(const Pair* at) {
  return __nvvm_ldg_ull2(at);
}

// ---- XXH3

// A word of the secret, with the seed in it.
PERDURE_ON_GPU u64 secret_word(u32 word, u64 seed) {
  return perdure_xxh3_secret[word] + ((word & 1) != 0 ? 0 - seed : seed);
}
// The same, from any byte on that does not begin a word.
PERDURE_ON_GPU u64 secret_at(u32 byte, u64 seed) {
  const u32 word = byte / 8;
  const u32 shift = byte % 8 * 8;
  return secret_word(word, seed) >> shift | secret_word(word + 1, seed) << (64 - shift);
}

// What this lane's two of the eight sums are, or what is added to them.
struct Sums {
  u64 even, odd;
};

PERDURE_ON_GPU void add(Sums& to, Pair bytes, u64 even_key, u64 odd_key) {
  const u64 even = bytes.x ^ even_key;
  const u64 odd = bytes.y ^ odd_key;
  to.even += bytes.y + (even & 0xffffffff) * (even >> 32);
  to.odd += bytes.x + (odd & 0xffffffff) * (odd >> 32);
}

PERDURE_ON_GPU u64 from_lane_across(u64 value, u32 step) {
  const u32 low = __nvvm_shfl_sync_bfly_i32(~0U, static_cast<u32>(value), step, 31);
  const u32 high = __nvvm_shfl_sync_bfly_i32(~0U, static_cast<u32>(value >> 32), step, 31);
  return u64{high} << 32 | low;
}
// The sum over all lanes with the same lane % 4.
PERDURE_ON_GPU u64 over_stripes(u64 value) {
  value += from_lane_across(value, 4);
  value += from_lane_across(value, 8);
  value += from_lane_across(value, 16);
  return value;
}

PERDURE_ON_GPU u64 scrambled(u64 sum, u64 key) {
  return (sum ^ sum >> 47 ^ key) * prime32_1;
}

PERDURE_ON_GPU u64 folded(u64 a, u64 b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
}

// XXH3 of `rows` KiB with a seed, in every lane: what XXH3_64bits_withSeed says.
template <u32 rows>
PERDURE_ON_GPU u64 xxh3(const Pair* bytes, u64 seed, u32 lane) {
  constexpr u32 ahead = 4;  // rows that are under way from memory
  static_assert(rows % ahead == 0);
  const u32 column = lane % 4;
  const u32 stripe = lane / 4;  // and stripe + 8, the second time
  const u64 keys[4] = {
      secret_word(stripe + 2 * column, seed), secret_word(stripe + 2 * column + 1, seed),
      secret_word(stripe + 2 * column + 8, seed), secret_word(stripe + 2 * column + 9, seed)};
  const u64 even_scramble = secret_word(16 + 2 * column, seed);
  const u64 odd_scramble = secret_word(17 + 2 * column, seed);
  Sums sums;
  sums.even = column == 0   ? prime32_3
              : column == 1 ? prime64_2
              : column == 2 ? prime64_4
                            : prime64_5;
  sums.odd = column == 0   ? prime64_1
             : column == 1 ? prime64_3
             : column == 2 ? prime32_2
                           : prime32_1;
  Pair first[ahead];
  Pair second[ahead];
  PERDURE_UNROLL for (u32 i = 0; i < ahead; i++) {
    first[i] = load(bytes + i * row_pairs + lane);
    second[i] = load(bytes + i * row_pairs + lanes + lane);
  }
  PERDURE_ROLLED for (u32 begun = 0; begun < rows; begun += ahead) {
    PERDURE_UNROLL for (u32 i = 0; i < ahead; i++) {
      const u32 row = begun + i;
      const bool last = row == rows - 1;
      Sums added = {0, 0};
      add(added, first[i], keys[0], keys[1]);
      // The very last stripe has other words of the secret.
      const bool other = last && stripe == 7;
      add(added, second[i], other ? secret_at(121 + 16 * column, seed) : keys[2],
          other ? secret_at(129 + 16 * column, seed) : keys[3]);
      if (row + ahead < rows) {
        first[i] = load(bytes + (row + ahead) * row_pairs + lane);
        second[i] = load(bytes + (row + ahead) * row_pairs + lanes + lane);
      }
      sums.even += over_stripes(added.even);
      sums.odd += over_stripes(added.odd);
      if (!last) {
        sums.even = scrambled(sums.even, even_scramble);
        sums.odd = scrambled(sums.odd, odd_scramble);
      }
    }
  }
  u64 sum = folded(sums.even ^ secret_at(11 + 16 * column, seed),
                   sums.odd ^ secret_at(19 + 16 * column, seed));
  sum += from_lane_across(sum, 1);
  sum += from_lane_across(sum, 2);
  sum += rows * 1024 * prime64_1;
  sum = (sum ^ sum >> 37) * 0x165667919E3779F9U;
  return sum ^ sum >> 32;
}

// ---- Kernels

// sums[i]: the checksum of block i of 64 KiB, of kind xxh3 of base/data_checksum.hpp.
PERDURE_KERNEL void perdure_block_sums(const Pair* data, u64* sums, u64 blocks) {
  const u32 lane = thread_in_block() % lanes;
  constexpr u64 pairs = block_bytes / sizeof(Pair);
  for (u64 at = this_thread() / lanes; at < blocks; at += all_threads() / lanes) {
    u64 sum = 0;
    PERDURE_ROLLED for (u32 piece = 0; piece < block_bytes / piece_bytes; piece++) {
      sum = xxh3<piece_bytes / 1024>(data + at * pairs + piece * (pairs / 2), sum, lane);
    }
    if (lane == 0) sums[at] = sum;
  }
}

// sums[i]: the checksum of page i of 4 KiB, as kind xxh3 has it of one page.
PERDURE_KERNEL void perdure_page_sums(const Pair* data, u64* sums, u64 pages) {
  const u32 lane = thread_in_block() % lanes;
  for (u64 at = this_thread() / lanes; at < pages; at += all_threads() / lanes) {
    const u64 sum = xxh3<page_bytes / 1024>(data + at * page_pairs, 0, lane);
    if (lane == 0) sums[at] = sum;
  }
}

// Each unit whose sum is not the one in the table goes on the list, in any order, and its sum to
// the table. The count is zero before.
PERDURE_KERNEL void perdure_list_changed(const u64* sums, u64* table, u32* list, u32* count,
                                         u64 units) {
  for (u64 at = this_thread(); at < units; at += all_threads()) {
    const u64 sum = sums[at];
    if (table[at] == sum) continue;
    table[at] = sum;
    list[__nvvm_atom_add_gen_i(reinterpret_cast<int*>(count), 1)] = static_cast<u32>(at);
  }
}

// The units of the list go to the same places of `to`, which may be memory of the host that is
// registered. A block of threads takes 16 pages of 4 KiB at once, whatever a unit is, so that as
// much is under way with small units as with large ones: then two blocks fill the bus.
PERDURE_KERNEL void perdure_store(const Pair* from, Pair* to, const u32* list, const u32* count,
                                  u64 unit_bytes) {
  constexpr u32 at_once = 16;
  const u32 thread = thread_in_block();
  const u64 unit_pages = unit_bytes / page_bytes;
  const u64 pages = *count * unit_pages;
  const u64 stride = all_blocks() * at_once;
  for (u64 begun = this_block() * at_once; begun < pages; begun += stride) {
    u64 unit = begun / unit_pages;
    u64 page = begun % unit_pages;
    u64 places[at_once];
    Pair pairs[at_once];
    PERDURE_UNROLL for (u32 i = 0; i < at_once; i++) {
      if (begun + i >= pages) break;
      places[i] = (list[unit] * unit_pages + page) * page_pairs + thread;
      pairs[i] = load(from + places[i]);
      page++;
      unit += page == unit_pages ? 1 : 0;
      page = page == unit_pages ? 0 : page;
    }
    PERDURE_UNROLL for (u32 i = 0; i < at_once; i++) {
      if (begun + i >= pages) break;
      to[places[i]] = pairs[i];
    }
  }
}
