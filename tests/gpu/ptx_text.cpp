// SPDX-License-Identifier: BSD-3-Clause
#include "ptx_text.hpp"

#include <cctype>
#include <charconv>
#include <optional>

namespace fake {
namespace {

struct Token {
  std::string_view text;
  std::uint32_t line;
};

bool is_of_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$' ||
         letter == '%' || letter == '.';
}

// Words, numbers with their sign, strings, and single marks.
std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  std::uint32_t line = 1;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = at;
    const char letter = text[at];
    if (letter == '\n') line++;
    if (std::isspace(static_cast<unsigned char>(letter)) != 0) {
      at++;
      continue;
    }
    if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (letter == '"') {
      at = text.find('"', at + 1);
      if (at == std::string_view::npos) throw PtxError(line, "a string without an end");
      at++;
    } else if (is_of_word(letter) || letter == '-') {
      do at++;
      while (at < text.size() && is_of_word(text[at]));
    } else {
      at++;
    }
    tokens.push_back({text.substr(begin, at - begin), line});
  }
  return tokens;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = negative ? text.substr(1) : text;
  std::uint64_t value = 0;
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || wrong != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return negative ? 0 - value : value;
}

// What an instruction is besides its operands. `shape` says what these are, in their order:
//   a b c d  a register, or where it is not the result a number   2  {a, a2}, or {b, c}
//   m  [b + value], or [a + value] of a store   p  a parameter   l  a label
//   s  a special register, a constant's address, or as b
struct Form {
  Op op;
  std::uint8_t width_bits;
  std::string_view shape;
};
const std::map<std::string_view, Form>& forms() {
  static const std::map<std::string_view, Form> known = {
      {"mov.u32", {Op::move, 32, "as"}},
      {"mov.u64", {Op::move, 64, "as"}},
      {"mov.b32", {Op::move, 32, "as"}},
      {"mov.b64", {Op::high_half, 32, "hb"}},
      {"mov.pred", {Op::move, 1, "ab"}},
      {"cvt.u64.u32", {Op::move, 32, "ab"}},
      {"cvt.u32.u64", {Op::move, 32, "ab"}},
      {"cvta.to.global.u64", {Op::move, 64, "ab"}},
      {"cvta.global.u64", {Op::move, 64, "ab"}},
      {"ld.param.u64", {Op::load_parameter, 64, "ap"}},
      {"ld.const.u64", {Op::load_constant, 64, "am"}},
      {"ld.global.u32", {Op::load, 32, "am"}},
      {"ld.global.u64", {Op::load, 64, "am"}},
      {"ld.global.v2.u64", {Op::load, 64, "2m"}},
      {"ld.global.nc.v2.u64", {Op::load, 64, "2m"}},
      {"st.global.u32", {Op::store, 32, "mb"}},
      {"st.global.u64", {Op::store, 64, "mb"}},
      {"st.global.v2.u64", {Op::store, 64, "m2"}},
      {"atom.global.add.u32", {Op::atomic_add, 32, "amc"}},
      {"shfl.sync.bfly.b32", {Op::shuffle, 32, "abcde"}},
      {"add.s32", {Op::add, 32, "abc"}},
      {"add.s64", {Op::add, 64, "abc"}},
      {"sub.s32", {Op::subtract, 32, "abc"}},
      {"sub.s64", {Op::subtract, 64, "abc"}},
      {"neg.s64", {Op::negate, 64, "ab"}},
      {"mul.lo.s32", {Op::multiply, 32, "abc"}},
      {"mul.lo.s64", {Op::multiply, 64, "abc"}},
      {"mul.hi.u64", {Op::multiply_high, 64, "abc"}},
      {"mul.wide.u32", {Op::multiply_wide, 64, "abc"}},
      {"mul.wide.s32", {Op::multiply_wide_signed, 64, "abc"}},
      {"div.u32", {Op::divide, 32, "abc"}},
      {"div.u64", {Op::divide, 64, "abc"}},
      {"and.b32", {Op::bitwise_and, 32, "abc"}},
      {"and.b64", {Op::bitwise_and, 64, "abc"}},
      {"and.pred", {Op::bitwise_and, 1, "abc"}},
      {"or.b32", {Op::bitwise_or, 32, "abc"}},
      {"or.b64", {Op::bitwise_or, 64, "abc"}},
      {"or.pred", {Op::bitwise_or, 1, "abc"}},
      {"xor.b32", {Op::bitwise_xor, 32, "abc"}},
      {"xor.b64", {Op::bitwise_xor, 64, "abc"}},
      {"xor.pred", {Op::bitwise_xor, 1, "abc"}},
      {"shl.b32", {Op::shift_left, 32, "abc"}},
      {"shl.b64", {Op::shift_left, 64, "abc"}},
      {"shr.u32", {Op::shift_right, 32, "abc"}},
      {"shr.u64", {Op::shift_right, 64, "abc"}},
      {"bfe.u32", {Op::bits, 32, "abcd"}},
      {"selp.u32", {Op::select, 32, "abcd"}},
      {"selp.b32", {Op::select, 32, "abcd"}},
      {"selp.b64", {Op::select, 64, "abcd"}},
      {"setp.eq.s32", {Op::is_equal, 32, "abc"}},
      {"setp.eq.s64", {Op::is_equal, 64, "abc"}},
      {"setp.ne.s32", {Op::is_not_equal, 32, "abc"}},
      {"setp.ne.s64", {Op::is_not_equal, 64, "abc"}},
      {"setp.lt.u32", {Op::is_less, 32, "abc"}},
      {"setp.lt.u64", {Op::is_less, 64, "abc"}},
      {"setp.gt.u32", {Op::is_less, 32, "acb"}},
      {"setp.gt.u64", {Op::is_less, 64, "acb"}},
      {"setp.ge.u32", {Op::is_not_less, 32, "abc"}},
      {"setp.ge.u64", {Op::is_not_less, 64, "abc"}},
      {"setp.le.u32", {Op::is_not_less, 32, "acb"}},
      {"setp.le.u64", {Op::is_not_less, 64, "acb"}},
      {"bra", {Op::branch, 0, "l"}},
      {"bra.uni", {Op::branch, 0, "l"}},
      {"ret", {Op::leave, 0, ""}},
  };
  return known;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : tokens_(tokens_of(text)) {}

  PtxModule read() {
    while (!at_end()) {
      const Token word = next();
      if (word.text == ".version" || word.text == ".target" || word.text == ".address_size") {
        next();
      } else if (word.text == ".const") {
        read_constant();
      } else if (word.text == ".visible") {
        expect(".entry");
        read_kernel();
      } else {
        throw PtxError(word.line, "what is \"" + std::string(word.text) + "\"?");
      }
    }
    return std::move(module_);
  }

 private:
  bool at_end() const { return at_ == tokens_.size(); }
  const Token& peek() const {
    if (at_end()) throw PtxError(tokens_.empty() ? 1 : tokens_.back().line, "the text ends here");
    return tokens_[at_];
  }
  Token next() {
    const Token token = peek();
    at_++;
    return token;
  }
  void expect(std::string_view text) {
    const Token token = next();
    if (token.text == text) return;
    throw PtxError(token.line,
                   "\"" + std::string(text) + "\" instead of \"" + std::string(token.text) + "\"");
  }
  bool skip(std::string_view text) {
    if (at_end() || peek().text != text) return false;
    at_++;
    return true;
  }
  std::uint64_t number() {
    const Token token = next();
    if (const auto value = number_in(token.text)) return *value;
    throw PtxError(token.line, "a number instead of \"" + std::string(token.text) + "\"");
  }

  // .const .align 8 .b8 name[2] = {1, 2};
  void read_constant() {
    expect(".align");
    const std::size_t alignment = number();
    expect(".b8");
    const Token name = next();
    expect("[");
    const std::size_t size_bytes = number();
    expect("]");
    expect("=");
    expect("{");
    auto& bytes = module_.constants;
    if (alignment == 0) throw PtxError(name.line, "an alignment of 0");
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    constants_[name.text] = bytes.size();
    const std::size_t end = bytes.size() + size_bytes;
    do bytes.push_back(static_cast<std::byte>(number()));
    while (skip(","));
    if (bytes.size() != end) throw PtxError(name.line, "not as many bytes as it says");
    expect("}");
    expect(";");
  }

  void read_kernel() {
    kernel_ = PtxKernel();
    registers_.clear();
    numbers_.clear();
    labels_.clear();
    parameters_.clear();
    jumps_.clear();
    kernel_.name = next().text;
    expect("(");
    while (!skip(")")) {
      expect(".param");
      expect(".u64");
      parameters_[next().text] = kernel_.parameters++;
      skip(",");
    }
    if (skip(".maxntid")) {
      kernel_.threads_max = static_cast<std::uint32_t>(number());
      while (skip(",")) {
        if (number() != 1) throw PtxError(peek().line, "blocks of more than one dimension");
      }
    }
    expect("{");
    while (!skip("}")) read_line();
    for (const auto& [instruction, label] : jumps_) {
      const auto found = labels_.find(label.text);
      if (found == labels_.end()) throw PtxError(label.line, "a label that is not there");
      kernel_.instructions[instruction].value = found->second;
    }
    kernel_.instructions.push_back({.op = Op::leave});
    for (const auto& [value, number] : numbers_) kernel_.numbers.emplace_back(number, value);
    module_.kernels[kernel_.name] = kernel_;
  }

  // A declaration, a label, an instruction, or a part in braces.
  void read_line() {
    if (skip("{")) {
      while (!skip("}")) read_line();
    } else if (skip(".reg")) {
      read_registers();
    } else if (skip(".pragma")) {
      expect("\"nounroll\"");
      expect(";");
    } else if (at_ + 1 < tokens_.size() && tokens_[at_ + 1].text == ":") {
      labels_[next().text] = kernel_.instructions.size();
      expect(":");
    } else {
      read_instruction();
    }
  }

  // .reg .b32 %r<128>;  .reg .b32 tmp;
  void read_registers() {
    const Token type = next();
    if (type.text != ".pred" && type.text != ".b32" && type.text != ".b64") {
      throw PtxError(type.line, "registers of type " + std::string(type.text));
    }
    const Token name = next();
    if (!skip("<")) {
      registers_[std::string(name.text)] = kernel_.registers++;
    } else {
      const std::uint64_t count = number();
      for (std::uint64_t i = 0; i < count; i++) {
        registers_[std::string(name.text) + std::to_string(i)] = kernel_.registers++;
      }
      expect(">");
    }
    expect(";");
  }

  std::uint32_t register_of(const Token& token) const {
    const auto found = registers_.find(token.text);
    if (found != registers_.end()) return found->second;
    throw PtxError(token.line, "the register " + std::string(token.text) + " is not declared");
  }
  std::uint32_t of_number(std::uint64_t value) {
    const auto [place, is_new] = numbers_.try_emplace(value, kernel_.registers);
    if (is_new) kernel_.registers++;
    return place->second;
  }
  // A number is cut to what the instruction takes.
  std::uint32_t operand(std::uint8_t width_bits) {
    const Token token = next();
    const auto value = number_in(token.text);
    if (!value) return register_of(token);
    return of_number(width_bits == 64   ? *value
                     : width_bits == 32 ? *value & 0xffffffffU
                                        : static_cast<std::uint64_t>(*value != 0));
  }

  void read_instruction() {
    Instruction made;
    if (skip("@")) {
      made.guard_is_not = skip("!");
      made.guard = register_of(next());
    }
    const Token name = next();
    made.line = name.line;
    const auto form = forms().find(name.text);
    if (form == forms().end()) {
      throw PtxError(name.line, "the instruction " + std::string(name.text) + " is not known");
    }
    made.op = form->second.op;
    made.width_bits = form->second.width_bits;
    bool first = true;
    for (const char kind : form->second.shape) {
      if (!first) expect(",");
      first = false;
      read_operand(made, kind);
    }
    expect(";");
    kernel_.instructions.push_back(made);
  }

  void read_operand(Instruction& made, char kind) {
    // The operands of a wide product are half as wide, as is how far to shift.
    const bool of_half = made.op == Op::multiply_wide || made.op == Op::multiply_wide_signed ||
                         ((made.op == Op::shift_left || made.op == Op::shift_right) && kind == 'c');
    const std::uint8_t width_bits = of_half ? 32 : made.width_bits;
    switch (kind) {
      case 'a':
        made.a = register_of(next());
        break;
      case 'b':
        made.b = operand(width_bits);
        break;
      case 'c':
        made.c = operand(width_bits);
        break;
      case 'd':
        if (made.op == Op::shuffle) return exactly(31);
        made.d = operand(made.op == Op::select ? 1 : width_bits);
        break;
      case 'e':
        return exactly(~std::uint64_t{0});
      case 's':
        return read_source(made);
      case 'h':
        return read_halves(made);
      case '2':
        return read_pair(made);
      case 'm':
        return read_place(made);
      case 'p':
        expect("[");
        made.value = parameter(next()) * 8;
        expect("]");
        break;
      default:
        jumps_.emplace_back(kernel_.instructions.size(), next());
    }
  }

  void exactly(std::uint64_t wanted) {
    const std::uint32_t line = peek().line;
    if (number() != wanted) throw PtxError(line, "a shuffle that is not among all lanes");
  }
  std::uint64_t parameter(const Token& token) const {
    const auto found = parameters_.find(token.text);
    if (found != parameters_.end()) return found->second;
    throw PtxError(token.line, "there is no parameter " + std::string(token.text));
  }

  void read_source(Instruction& made) {
    static const std::map<std::string_view, SpecialRegister> special = {
        {"%tid.x", tid_x}, {"%ctaid.x", ctaid_x}, {"%ntid.x", ntid_x}, {"%nctaid.x", nctaid_x}};
    const std::string_view name = peek().text;
    if (const auto found = special.find(name); found != special.end()) {
      made.op = Op::special;
      made.value = found->second;
      next();
    } else if (const auto constant = constants_.find(name); constant != constants_.end()) {
      made.b = of_number(constant->second);
      next();
    } else {
      made.b = operand(made.width_bits);
    }
  }
  // mov.b64 {low, high}, from, of which the high half alone is used.
  void read_halves(Instruction& made) {
    expect("{");
    const Token low = next();
    if (low.text != "tmp") throw PtxError(low.line, "the low half is wanted too");
    expect(",");
    made.a = register_of(next());
    expect("}");
  }
  void read_pair(Instruction& made) {
    expect("{");
    (made.op == Op::store ? made.b : made.a) = register_of(next());
    expect(",");
    (made.op == Op::store ? made.c : made.a2) = register_of(next());
    expect("}");
  }
  void read_place(Instruction& made) {
    expect("[");
    (made.op == Op::store ? made.a : made.b) = register_of(next());
    if (!skip("]")) {
      // "+8" and "+-8": the sign and the number are two tokens.
      expect("+");
      made.value = number();
      expect("]");
    }
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  PtxModule module_;
  std::map<std::string_view, std::size_t> constants_;
  // Of the kernel that is being read.
  PtxKernel kernel_;
  std::map<std::string, std::uint32_t, std::less<>> registers_;
  std::map<std::uint64_t, std::uint32_t> numbers_;
  std::map<std::string_view, std::uint64_t> labels_;
  std::map<std::string_view, std::uint32_t> parameters_;
  std::vector<std::pair<std::size_t, Token>> jumps_;
};

}  // namespace

PtxModule read_ptx(std::string_view text) {
  return Reader(text).read();
}

}  // namespace fake
