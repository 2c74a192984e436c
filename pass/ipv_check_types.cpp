// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check_types.hpp"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Operator.h>

#include <vector>

namespace perdure {

using llvm::Constant;
using llvm::DICompositeType;
using llvm::DIType;
using llvm::StructType;

namespace {

constexpr size_t members_max = 256;
constexpr unsigned depth_max = 8;

struct Member {
  std::string name;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

const DIType* without_names(const DIType* type) {
  while (const auto* derived = llvm::dyn_cast_or_null<llvm::DIDerivedType>(type)) {
    const unsigned tag = derived->getTag();
    if (tag != llvm::dwarf::DW_TAG_typedef && tag != llvm::dwarf::DW_TAG_const_type &&
        tag != llvm::dwarf::DW_TAG_volatile_type) {
      break;
    }
    type = derived->getBaseType();
  }
  return type;
}

bool is_struct(const DICompositeType* type) {
  return type != nullptr && (type->getTag() == llvm::dwarf::DW_TAG_structure_type ||
                             type->getTag() == llvm::dwarf::DW_TAG_class_type);
}

// Members of members by their paths; of unions and arrays only the name.
void add_members(const DICompositeType& type, const std::string& prefix, uint64_t begin,
                 unsigned depth, std::vector<Member>& members) {
  for (const llvm::DINode* node : type.getElements()) {
    const auto* member = llvm::dyn_cast_or_null<llvm::DIDerivedType>(node);
    if (member == nullptr || member->isStaticMember() || members.size() >= members_max) continue;
    const bool is_base = member->getTag() == llvm::dwarf::DW_TAG_inheritance;
    if (!is_base && member->getTag() != llvm::dwarf::DW_TAG_member) continue;
    const uint64_t at = begin + member->getOffsetInBits() / 8;
    const DIType* of = without_names(member->getBaseType());
    const auto* inner = llvm::dyn_cast_or_null<DICompositeType>(of);
    const std::string name = prefix + member->getName().str();
    if (is_struct(inner) && !inner->isForwardDecl() && depth < depth_max) {
      add_members(*inner, is_base || member->getName().empty() ? prefix : name + ".", at, depth + 1,
                  members);
    } else if (of != nullptr && !is_base) {
      const bool is_array = inner != nullptr && inner->getTag() == llvm::dwarf::DW_TAG_array_type;
      const uint64_t bits = member->isBitField()
                                ? member->getOffsetInBits() % 8 + member->getSizeInBits()
                                : of->getSizeInBits();
      members.push_back({is_array ? name + "[]" : name, at, (bits + 7) / 8});
    }
  }
}

bool are_equal(const DICompositeType& one, const DICompositeType& other) {
  std::vector<Member> members[2];
  add_members(one, "", 0, 0, members[0]);
  add_members(other, "", 0, 0, members[1]);
  return std::equal(members[0].begin(), members[0].end(), members[1].begin(), members[1].end(),
                    [](const Member& a, const Member& b) {
                      return a.name == b.name && a.offset == b.offset && a.bytes == b.bytes;
                    });
}

// ns::Outer::Name, as clang names the type in its code; without what templates were given.
std::string scoped_name(const DIType& type) {
  std::string name = type.getName().split('<').first.str();
  for (const llvm::DIScope* scope = type.getScope(); scope != nullptr; scope = scope->getScope()) {
    if (!llvm::isa<llvm::DINamespace>(scope) && !llvm::isa<DICompositeType>(scope)) break;
    const llvm::StringRef own = scope->getName();
    name = (own.empty() ? "(anonymous namespace)" : own.split('<').first).str() + "::" + name;
  }
  return name;
}

// struct.point.12 is point.
std::string name_of(const StructType& type) {
  llvm::StringRef name = type.getName();
  for (const char* prefix : {"struct.", "class.", "union."}) {
    if (name.consume_front(prefix)) break;
  }
  const auto [front, number] = name.rsplit('.');
  if (!number.empty() && number.find_first_not_of("0123456789") == llvm::StringRef::npos)
    name = front;
  name.consume_back(".base");
  return name.str();
}

llvm::StructType* element_of(llvm::Type* type) {
  while (type->isArrayTy()) type = type->getArrayElementType();
  return llvm::dyn_cast<StructType>(type);
}

// What the indices after the struct add; -1: not constant.
int64_t offset_in_struct(const llvm::GEPOperator& address, const StructType* type,
                         const llvm::DataLayout& layout) {
  int64_t offset = 0;
  bool inside = element_of(address.getSourceElementType()) == type &&
                !address.getSourceElementType()->isArrayTy();
  bool first = true;
  for (auto step = llvm::gep_type_begin(address); step != llvm::gep_type_end(address); ++step) {
    const auto* index = llvm::dyn_cast<llvm::ConstantInt>(step.getOperand());
    if (StructType* in = step.getStructTypeOrNull()) {
      inside = true;
      const auto* elements = layout.getStructLayout(in);
      offset += static_cast<int64_t>(
          elements->getElementOffset(static_cast<unsigned>(index->getZExtValue())));
    } else if (inside && !first) {
      if (index == nullptr) return -1;
      offset += index->getSExtValue() *
                static_cast<int64_t>(layout.getTypeAllocSize(step.getIndexedType()));
    }
    first = false;
  }
  return offset;
}

}  // namespace

Constant* private_constant(llvm::Module& module, Constant* value, const char* name) {
  auto* place = new llvm::GlobalVariable(module, value->getType(), true,
                                         llvm::GlobalValue::PrivateLinkage, value, name);
  place->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return place;
}

Constant* private_text(llvm::Module& module, const std::string& words) {
  return private_constant(module, llvm::ConstantDataArray::getString(module.getContext(), words),
                          "perdure_ipv_check_text");
}

PartOfStruct part_of_struct(const llvm::Value* address, const llvm::DataLayout& layout) {
  PartOfStruct found;
  int64_t behind = 0;  // what the addresses below `address` add to it; -1: not constant
  while (const auto* step = llvm::dyn_cast<llvm::GEPOperator>(address)) {
    if (StructType* type = element_of(step->getSourceElementType())) {
      const int64_t own = offset_in_struct(*step, type, layout);
      found = {type, own < 0 || behind < 0 ? -1 : own + behind};
    }
    llvm::APInt own(layout.getIndexTypeSizeInBits(step->getType()), 0);
    const bool constant = step->accumulateConstantOffset(layout, own);
    behind = constant && behind >= 0 && own.isNonNegative() ? behind + own.getSExtValue() : -1;
    address = step->getPointerOperand();
  }
  // Nothing leads to the first member of a variable, or by its bytes to any.
  const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(address);
  StructType* whole = variable == nullptr ? nullptr : element_of(variable->getValueType());
  if (whole == nullptr || whole == found.type || !whole->isSized()) return found;
  const auto bytes = static_cast<int64_t>(layout.getTypeAllocSize(whole).getFixedValue());
  return {whole, behind < 0 || bytes == 0 ? -1 : behind % bytes};
}

TypeConstants::TypeConstants(llvm::Module& module) : module_(module) {
  llvm::DebugInfoFinder finder;
  finder.processModule(module);
  for (const DIType* type : finder.types()) {
    const auto* composite = llvm::dyn_cast<DICompositeType>(type);
    if (!is_struct(composite) || composite->isForwardDecl() || composite->getName().empty()) {
      continue;
    }
    const std::pair key{scoped_name(*type), type->getSizeInBits() / 8};
    const auto [place, is_new] = described_.try_emplace(key, composite);
    if (!is_new && place->second != nullptr && !are_equal(*place->second, *composite)) {
      place->second = nullptr;
    }
  }
}

const DICompositeType* TypeConstants::described(const std::string& name, uint64_t bytes) const {
  const auto found = described_.find({name, bytes});
  return found == described_.end() ? nullptr : found->second;
}

Constant* TypeConstants::of(StructType* type) {
  if (type == nullptr || !type->hasName() || type->isOpaque()) {
    return llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(module_.getContext()));
  }
  Constant*& made = made_[type];
  if (made == nullptr) made = make(*type);
  return made;
}

Constant* TypeConstants::make(StructType& type) {
  llvm::LLVMContext& context = module_.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  const auto number = [&](uint64_t value) { return llvm::ConstantInt::get(word, value); };
  const std::string name = name_of(type);
  const uint64_t bytes = module_.getDataLayout().getTypeAllocSize(&type).getFixedValue();
  std::vector<Member> members;
  if (const DICompositeType* known = described(name, bytes)) add_members(*known, "", 0, 0, members);
  auto* of_member = StructType::get(context, {pointer, word, word});
  std::vector<Constant*> rows;
  for (const Member& member : members) {
    rows.push_back(llvm::ConstantStruct::get(
        of_member,
        {private_text(module_, member.name), number(member.offset), number(member.bytes)}));
  }
  Constant* table = llvm::ConstantArray::get(llvm::ArrayType::get(of_member, rows.size()), rows);
  Constant* place = private_constant(module_, table, "perdure_ipv_check_members");
  auto* of_type = StructType::get(context, {pointer, word, pointer, word});
  return private_constant(
      module_,
      llvm::ConstantStruct::get(
          of_type, {private_text(module_, name), number(bytes), place, number(rows.size())}),
      "perdure_ipv_check_type");
}

}  // namespace perdure
