//===- amd_rules.cpp - Operands that AMD's chips take or not --------------===//
//
// Many operations of AMD's dialects stand for a family of instructions, of which a chip has some: atomic ones
// of some types, moves of some sizes, exchanges of lanes in some patterns. What is here is what LLVM 22 makes
// code for.
//
//===----------------------------------------------------------------------===//

#include "device/amd_rules.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using amdgpu::Chipset;

namespace offload {
namespace {

std::string spelled(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

bool isGfx9(const Chipset &c) { return c.majorVersion == 9; }
bool is90a(const Chipset &c) { return isGfx9(c) && c >= Chipset(9, 0, 0xa) && c != Chipset(9, 0, 0xc); }
bool is908(const Chipset &c) { return c == Chipset(9, 0, 8) || is90a(c); }
bool is950(const Chipset &c) { return isGfx9(c) && c >= Chipset(9, 5, 0); }
bool is10(const Chipset &c) { return c.majorVersion >= 10; }
bool is11(const Chipset &c) { return c.majorVersion >= 11; }
bool is12(const Chipset &c) { return c.majorVersion >= 12; }
bool is1250(const Chipset &c) { return c >= Chipset(12, 5, 0); }

// ----- Atomic operations on buffers

struct AtomicRule {
  StringRef kind; // the end of the operation's name
  StringRef type;
  bool (*has)(const Chipset &);
  StringRef wanted;
};

constexpr AtomicRule kAtomics[] = {
    {"fadd", "f32", [](const Chipset &c) { return is908(c) || is11(c); },
     "gfx908, gfx90a, gfx942, gfx950, or gfx11 and later"},
    {"fadd", "f64", [](const Chipset &c) { return is90a(c) || is1250(c); },
     "gfx90a, gfx942, gfx950 or gfx1250"},
    {"fadd", "vector<2xf16>", [](const Chipset &c) { return is908(c) || is12(c); },
     "gfx908, gfx90a, gfx942, gfx950, or gfx12 and later"},
    {"fadd", "vector<2xbf16>", [](const Chipset &c) { return is950(c) || is12(c); },
     "gfx950, or gfx12 and later"},
    {"fmax", "f32", is10, "gfx10 or later"},
    {"fmax", "f64", [](const Chipset &c) { return is90a(c) || c.majorVersion == 10 || is1250(c); },
     "gfx90a, gfx942, gfx950, gfx10 or gfx1250"},
};

/// Values are exchanged as they are, of any type of the size.
std::optional<std::string> whyNotCompared(amdgpu::RawBufferAtomicCmpswapOp op) {
  Type type = op.getSrc().getType();
  auto vector = dyn_cast<VectorType>(type);
  Type element = getElementTypeOrSelf(type);
  if (!element.isIntOrFloat())
    return std::nullopt;
  int64_t bits = element.getIntOrFloatBitWidth() * (vector ? vector.getNumElements() : 1);
  if (bits == 32 || bits == 64)
    return std::nullopt;
  return "'" + op->getName().getStringRef().str() + "' compares and exchanges 32 or 64 bits, and no " +
         spelled(type) + ": memref.generic_atomic_rmw takes what is smaller";
}

std::optional<std::string> whyNotAtomic(Operation *op, const Chipset &chip, const ChipName &where) {
  if (auto exchange = dyn_cast<amdgpu::RawBufferAtomicCmpswapOp>(op))
    return whyNotCompared(exchange);
  StringRef name = op->getName().getStringRef(), kind = name;
  if (!kind.consume_front("amdgpu.raw_buffer_atomic_") &&
      !kind.consume_front("rocdl.raw.ptr.buffer.atomic.") && !kind.consume_front("rocdl.raw.buffer.atomic."))
    return std::nullopt;
  if (kind != "fadd" && kind != "fmax")
    return std::nullopt;
  std::string type = spelled(op->getOperand(0).getType()), types;
  for (const AtomicRule &rule : kAtomics) {
    if (rule.kind != kind)
      continue;
    if (rule.type == type)
      return rule.has(chip) ? std::nullopt
                            : std::optional(needsChip((name + " of " + type).str(), rule.wanted, where));
    types += (types.empty() ? "" : ", ") + rule.type.str();
  }
  return ("'" + name + "' has no instruction for values of type " + type + "; there are some for " + types)
      .str();
}

// ----- What moves at once

std::optional<std::string> whyNotMoved(Operation *op) {
  Type type;
  if (isa<amdgpu::RawBufferLoadOp, ROCDL::RawPtrBufferLoadOp, ROCDL::RawBufferLoadOp>(op))
    type = op->getResult(0).getType();
  else if (isa<amdgpu::RawBufferStoreOp, amdgpu::RawBufferAtomicCmpswapOp, ROCDL::RawPtrBufferStoreOp,
               ROCDL::RawBufferStoreOp>(op))
    type = op->getOperand(0).getType();
  if (!type)
    return std::nullopt;
  auto vector = dyn_cast<VectorType>(type);
  Type element = getElementTypeOrSelf(type);
  if (isa<LLVM::LLVMPointerType>(element))
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream said(text);
  said << "'" << op->getName()
       << "' moves 8, 16, 32, 64, 96 or 128 bits, as a number or a vector of one dimension, "
       << "and no " << type << ": ";
  if (vector && vector.getRank() != 1) {
    said << "vector.shape_cast makes one dimension of several";
    return text;
  }
  if (!element.isIntOrIndexOrFloat()) {
    said << "move its parts one by one";
    return text;
  }
  // An index has 64 bits, and one bit takes a byte.
  int64_t width = element.isIndex() ? 64 : std::max<int64_t>(8, element.getIntOrFloatBitWidth());
  int64_t bits = width * (vector ? vector.getNumElements() : 1);
  if (llvm::is_contained({8, 16, 32, 64, 96, 128}, bits))
    return std::nullopt;
  said << "move it in parts";
  return text;
}

/// Loads that go to a block's memory.
std::optional<std::string> whyNotLoadedThere(Operation *op, const Chipset &chip, const ChipName &where) {
  std::optional<int64_t> bytes;
  StringRef name = op->getName().getStringRef();
  if (auto load = dyn_cast<ROCDL::LoadToLDSOp>(op)) {
    bytes = load.getSize();
  } else if (auto load = dyn_cast<ROCDL::GlobalLoadLDSOp>(op)) {
    bytes = load.getSize();
  } else if (auto load = dyn_cast<ROCDL::RawPtrBufferLoadLdsOp>(op)) {
    if (is11(chip))
      return needsChip(name, "a chip of gfx9 or gfx10", where);
    if (APInt constant; matchPattern(load.getSize(), m_ConstantInt(&constant)))
      bytes = constant.getSExtValue();
  }
  if (!bytes || llvm::is_contained({1, 2, 4}, *bytes))
    return std::nullopt;
  if (*bytes == 12 || *bytes == 16)
    return is950(chip)
               ? std::nullopt
               : std::optional(needsChip((name + " of " + Twine(*bytes) + " bytes").str(), "gfx950", where));
  return ("'" + name + "' moves 1, 2 or 4 bytes for each lane (gfx950: 12 or 16 too), and not " +
          Twine(*bytes))
      .str();
}

// ----- Lanes

/// The patterns of DPP by the number that instructions have for them, as the ISA manuals list them.
std::optional<std::string> whyNotExchanged(Operation *op, const Chipset &chip, const ChipName &where) {
  auto update = dyn_cast<ROCDL::DPPUpdateOp>(op);
  if (!update)
    return std::nullopt;
  uint32_t control = update.getDppCtrl();
  StringRef name = op->getName().getStringRef();
  auto between = [&](uint32_t first, uint32_t last) { return control >= first && control <= last; };
  bool waves = llvm::is_contained({0x130u, 0x134u, 0x138u, 0x13cu}, control),
       broadcasts = between(0x142, 0x143);
  if (between(0, 0xff) || between(0x101, 0x10f) || between(0x111, 0x11f) || between(0x121, 0x12f) ||
      between(0x140, 0x141))
    return std::nullopt;
  std::string which = (name + " of pattern 0x" + Twine::utohexstr(control)).str();
  if (waves || broadcasts)
    return isGfx9(chip) ? std::nullopt : std::optional(needsChip(which, "a chip of gfx9", where));
  if (between(0x150, 0x15f))
    return is90a(chip) || is10(chip)
               ? std::nullopt
               : std::optional(needsChip(which, "gfx90a, gfx942, gfx950, or gfx10 and later", where));
  if (between(0x160, 0x16f))
    return is10(chip) ? std::nullopt : std::optional(needsChip(which, "gfx10 or later", where));
  return "'" + which +
         "' is none of the patterns of lanes that instructions have: the ISA manuals list them "
         "under DPP";
}

/// A bit for each lane, of which gfx9 has 64 in a wave.
std::optional<std::string> whyNotCounted(Operation *op, const Chipset &chip) {
  if (!isa<ROCDL::BallotOp>(op) || !isGfx9(chip) || !op->getResult(0).getType().isInteger(32))
    return std::nullopt;
  return "'rocdl.ballot' gives i32, and waves have 64 lanes here: take i64, which serves for waves of 32 too";
}

} // namespace

std::optional<std::string> whyNotOperands(Operation *op, const Chipset &chip, const ChipName &where) {
  if (auto why = whyNotMoved(op))
    return why;
  if (auto why = whyNotAtomic(op, chip, where))
    return why;
  if (auto why = whyNotLoadedThere(op, chip, where))
    return why;
  if (auto why = whyNotExchanged(op, chip, where))
    return why;
  return whyNotCounted(op, chip);
}

} // namespace offload
