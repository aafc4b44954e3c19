//===- vendor_rules.cpp - Whose operation is it, and which chips have it --===//
//
// What a chip lacks, LLVM finds out late: it cannot select an instruction, or the assembler refuses it. The
// tables here hold what the vendors' documents say, so that the refusal can name the chip that is needed.
// What is not in them is left to the code generator, whose failures are located too (positions.h).
//
//===----------------------------------------------------------------------===//

#include "device/vendor_rules.h"
#include "device/amd_rules.h"
#include "device/fragments.h"
#include "names.h"

#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/AMDGPU/Utils/Chipset.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/StringExtras.h"

#include <array>

using namespace mlir;

namespace offload {
namespace {

struct Owner {
  StringRef dialect, owner, target;
};

constexpr Owner kOwners[] = {
    {"nvgpu", "NVIDIA GPUs", "nvvm"}, {"nvvm", "NVIDIA GPUs", "nvvm"}, {"amdgpu", "AMD GPUs", "rocdl"},
    {"rocdl", "AMD GPUs", "rocdl"},   {"xegpu", "Intel GPUs", ""},     {"xevm", "Intel GPUs", ""},
};

const Owner *find(StringRef dialect) {
  for (const Owner &entry : kOwners)
    if (entry.dialect == dialect)
      return &entry;
  return nullptr;
}

std::string foreign(const Twine &what, const Owner &owner, const ChipName &where) {
  std::string text =
      (what + " of " + owner.owner + ", and target " + where.target + " has nothing like it: ").str();
  if (owner.target.empty())
    return text + "no target here has; take it out of this module";
  return text + "build this module for " + owner.target.str() +
         " alone, or give the other targets a kernel of their own";
}

/// A rule holds for an operation of its name and, where the name ends in '*', for all that begin with it; the
/// first that fits counts.
bool fits(StringRef pattern, StringRef name) {
  return pattern.consume_back("*") ? name.starts_with(pattern) : pattern == name;
}

// ----- NVIDIA

struct MinimalChip {
  StringRef name;
  int number;               // sm_<number> or later
  bool accelerated = false; // that number with the suffix a, and no other
};

constexpr MinimalChip kNvidia[] = {
    {"nvgpu.ldmatrix", 75},
    {"nvgpu.mma.sp.sync", 80},
    {"nvgpu.device_async_*", 80},
    {"nvgpu.mbarrier.arrive.expect_tx", 90},
    {"nvgpu.mbarrier.try_wait.parity", 90},
    {"nvgpu.mbarrier.*", 80},
    {"nvgpu.tma.*", 90},
    {"nvgpu.warpgroup.*", 90, true},
    {"nvvm.ldmatrix", 75},
    {"nvvm.stmatrix", 90},
    {"nvvm.mma.sp.sync", 80},
    {"nvvm.cp.async.bulk.*", 90},
    {"nvvm.cp.async.*", 80},
    {"nvvm.mbarrier.arrive.expect_tx", 90},
    {"nvvm.mbarrier.arrive_drop.expect_tx", 90},
    {"nvvm.mbarrier.expect_tx", 90},
    {"nvvm.mbarrier.complete_tx", 90},
    {"nvvm.mbarrier.try_wait*", 90},
    {"nvvm.mbarrier.*", 80},
    {"nvvm.cluster.*", 90},
    {"nvvm.read.ptx.sreg.cluster*", 90},
    {"nvvm.fence.mbarrier.init", 90},
    {"nvvm.fence.proxy*", 90},
    {"nvvm.fence.sc.cluster", 90},
    {"nvvm.griddepcontrol", 90},
    {"nvvm.elect.sync", 90},
    {"nvvm.setmaxregister", 90, true},
    {"nvvm.wgmma.*", 90, true},
    {"nvvm.match.sync", 70},
    {"nvvm.nanosleep", 70},
    {"nvvm.wmma.*", 70},
    {"nvvm.redux.sync", 80},
};

/// The oldest chip with a matrix product of this shape; 0 where the table has none.
int mmaChip(Type element, bool isFloat8, std::array<int64_t, 3> shape) {
  auto [m, n, k] = shape;
  if (isFloat8)
    return 89;
  if (!element)
    return 0;
  if (element.isF16())
    return m == 8 ? 70 : k == 8 ? 75 : 80;
  if (element.isInteger())
    return m == 8 ? 75 : 80;
  return 80; // bf16, tf32, f64
}

int mmaChip(Operation *op) {
  if (auto mma = dyn_cast<nvgpu::MmaSyncOp>(op)) {
    Type element = cast<VectorType>(mma.getMatrixA().getType()).getElementType();
    return mmaChip(element, element.getIntOrFloatBitWidth() == 8 && !element.isInteger(),
                   mma.getMmaShapeAsArray());
  }
  if (auto mma = dyn_cast<NVVM::MmaOp>(op)) {
    NVVM::MMAShapeAttr shape = mma.getShape();
    std::array<int64_t, 3> mnk = {shape.getM(), shape.getN(), shape.getK()};
    Builder b(op->getContext());
    Type element = mma.getOperandA().front().getType();
    if (auto vector = dyn_cast<VectorType>(element))
      element = vector.getElementType();
    bool isFloat8 = false;
    if (std::optional<NVVM::MMATypes> type = mma.getMultiplicandAPtxType()) {
      StringRef name = NVVM::stringifyMMATypes(*type);
      isFloat8 = name == "e4m3" || name == "e5m2";
      if (name == "bf16" || name == "tf32")
        element = b.getBF16Type();
    }
    return mmaChip(element, isFloat8, mnk);
  }
  if (auto mma = dyn_cast<gpu::SubgroupMmaComputeOp>(op)) {
    Type element = cast<gpu::MMAMatrixType>(mma.getOpA().getType()).getElementType();
    return element.isF16() ? 70 : element.isInteger() ? 72 : 80;
  }
  if (isa<gpu::SubgroupMmaLoadMatrixOp, gpu::SubgroupMmaStoreMatrixOp>(op))
    return 70;
  return 0;
}

/// CUDA 13's number of a chip.
int renamed(int number) { return number == 101 ? 110 : number; }

std::optional<std::string> whyNotNvidia(Operation *op, const ChipName &where) {
  StringRef name = op->getName().getStringRef(), digits = where.chip;
  int number = 0;
  digits.consume_front("sm_");
  if (digits.consumeInteger(10, number))
    return std::nullopt;
  // What follows the number: a for one chip's own instructions, f for those of its family.
  bool accelerated = digits == "a" || digits == "f";
  if (auto required = dyn_cast<NVVM::RequiresSMInterface>(op)) {
    NVVM::NVVMCheckSMVersion version = required.getRequiredMinSMVersion();
    if (!version.archAccelerated)
      return number < version.smVersionList[0]
                 ? std::optional(
                       needsChip(name, "sm_" + Twine(version.smVersionList[0]) + " or later", where))
                 : std::nullopt;
    SmallVector<std::string> chips;
    for (int wanted : version.smVersionList) {
      // What a chip has of its family's, later chips of that family have with either suffix.
      int oldest = renamed(wanted);
      if (accelerated && renamed(number) / 10 == oldest / 10 && renamed(number) >= oldest)
        return std::nullopt;
      chips.push_back("sm_" + std::to_string(oldest) + "a");
    }
    return needsChip(name, llvm::join(chips, " or "), where);
  }
  if (int wanted = mmaChip(op); wanted > number)
    return needsChip(name, "sm_" + Twine(wanted) + " or later for this shape and type", where);
  for (const MinimalChip &rule : kNvidia) {
    if (!fits(rule.name, name))
      continue;
    if (rule.accelerated && !(number == rule.number && accelerated) && number / 10 == rule.number / 10)
      return needsChip(name, "sm_" + Twine(rule.number) + "a", where);
    if (rule.accelerated && number / 10 != rule.number / 10 && rule.name != "nvvm.setmaxregister")
      return needsChip(name, "sm_" + Twine(rule.number) + "a", where);
    if (number < rule.number)
      return needsChip(name, "sm_" + Twine(rule.number) + (rule.accelerated ? "a" : " or later"), where);
    return std::nullopt;
  }
  return std::nullopt;
}

// ----- AMD

using amdgpu::Chipset;

struct ChipRule {
  StringRef name;
  bool (*has)(const Chipset &);
  StringRef wanted;
};

bool isGfx9From(const Chipset &chip, unsigned minor, unsigned stepping) {
  return chip.majorVersion == 9 && chip >= Chipset(9, minor, stepping);
}
bool is908(const Chipset &c) {
  return isGfx9From(c, 0, 8) && c != Chipset(9, 0, 9) && c != Chipset(9, 0, 0xc);
}
bool is942(const Chipset &c) { return isGfx9From(c, 4, 0); }
bool is950(const Chipset &c) { return isGfx9From(c, 5, 0); }
bool is11(const Chipset &c) { return c.majorVersion >= 11; }
bool is12(const Chipset &c) { return c.majorVersion >= 12; }
bool is1250(const Chipset &c) { return c >= Chipset(12, 5, 0); }
bool is10(const Chipset &c) { return c.majorVersion >= 10; }
bool isFp8(const Chipset &c) { return is942(c) || is12(c); }
bool isLoadingToLds(const Chipset &c) { return isGfx9From(c, 0, 0); }
bool isSwapping(const Chipset &c) { return is950(c); }
bool isScaling(const Chipset &c) { return is950(c) || is1250(c); }

constexpr StringRef kFrom908 = "a chip of gfx9 with matrix cores (gfx908, gfx90a, gfx942, gfx950)",
                    kFrom942 = "gfx942 or gfx950", kOnly950 = "gfx950", kFrom1250 = "gfx1250 or later";

constexpr ChipRule kAmd[] = {
    {"amdgpu.mfma", is908, kFrom908},
    {"amdgpu.scaled_mfma", is950, kOnly950},
    {"amdgpu.sparse_mfma", is942, kFrom942},
    {"amdgpu.wmma", is11, "gfx11 or later"},
    {"amdgpu.scaled_wmma", is1250, kFrom1250},
    {"amdgpu.permlane_swap", isSwapping, kOnly950},
    {"amdgpu.transpose_load", is950, kOnly950},
    {"amdgpu.gather_to_lds", isLoadingToLds, "a chip of gfx9"},
    {"amdgpu.ext_packed_fp8", isFp8, "gfx942, gfx950, or gfx12 and later"},
    {"amdgpu.packed_trunc_2xfp8", isFp8, "gfx942, gfx950, or gfx12 and later"},
    {"amdgpu.packed_stoch_round_fp8", isFp8, "gfx942, gfx950, or gfx12 and later"},
    {"amdgpu.scaled_ext_packed_matrix", is1250, kFrom1250},
    {"amdgpu.scaled_ext_packed", isScaling, kOnly950},
    {"amdgpu.packed_scaled_trunc", isScaling, kOnly950},
    {"amdgpu.make_*", is1250, kFrom1250},
    {"amdgpu.tensor_*", is1250, kFrom1250},
    {"rocdl.mfma.scale.*", is950, kOnly950},
    {"rocdl.mfma.f32.*fp8", is942, kFrom942},
    {"rocdl.mfma.*", is908, kFrom908},
    {"rocdl.smfmac.*", is942, kFrom942},
    {"rocdl.wmma.scale*", is1250, kFrom1250},
    {"rocdl.wmma.*", is11, "gfx11 or later"},
    {"rocdl.permlane16.swap", isSwapping, kOnly950},
    {"rocdl.permlane32.swap", isSwapping, kOnly950},
    {"rocdl.permlanex16", is10, "gfx10 or later"},
    {"rocdl.ds.read.tr*", is950, kOnly950},
    {"rocdl.ds.load.tr*", is1250, kFrom1250},
    {"rocdl.global.load.tr*", is12, "gfx12 or later"},
    {"rocdl.global.load.lds", isLoadingToLds, "a chip of gfx9"},
    {"rocdl.load.to.lds", isLoadingToLds, "a chip of gfx9"},
    {"rocdl.tensor.*", is1250, kFrom1250},
    {"rocdl.cluster.*", is1250, kFrom1250},
    {"rocdl.s.barrier.signal*", is12, "gfx12 or later"},
    {"rocdl.s.barrier.wait", is12, "gfx12 or later"},
    {"rocdl.s.barrier.init", is12, "gfx12 or later"},
    {"rocdl.s.barrier.join", is12, "gfx12 or later"},
    {"rocdl.s.barrier.leave", is12, "gfx12 or later"},
    {"rocdl.s.get.*", is12, "gfx12 or later"},
    {"rocdl.s.wakeup.barrier", is1250, kFrom1250},
    {"rocdl.s.wait.*", is12, "gfx12 or later"},
    {"rocdl.tanh", is1250, kFrom1250},
    {"rocdl.cvt.scalef32.*", is950, kOnly950},
    {"rocdl.cvt.scale.*", is1250, kFrom1250},
    {"rocdl.cvt.f32.fp8", isFp8, "gfx942, gfx950, or gfx12 and later"},
    {"rocdl.cvt.f32.bf8", isFp8, "gfx942, gfx950, or gfx12 and later"},
};

/// MLIR's lowering ends the process where a conversion is of another family of formats than the chip's.
std::optional<std::string> whyNotFormat(Operation *op, const Chipset &chip, const ChipName &where) {
  Type type;
  if (auto widen = dyn_cast<amdgpu::ExtPackedFp8Op>(op))
    type = widen.getSource().getType();
  else if (isa<amdgpu::PackedTrunc2xFp8Op, amdgpu::PackedStochRoundFp8Op>(op))
    type = op->getResult(0).getType();
  if (!type || !isFp8(chip))
    return std::nullopt;
  Type element = getElementTypeOrSelf(type);
  bool ocp = amdgpu::hasOcpFp8(chip);
  if (ocp == isa<Float8E4M3FNType, Float8E5M2Type>(element))
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream(text) << "'" << op->getName() << "' of " << element << " needs "
                                 << (ocp ? "gfx942" : "gfx950 or gfx12 and later") << " and is built for "
                                 << where.said << " here: use "
                                 << (ocp ? "f8E4M3FN or f8E5M2" : "f8E4M3FNUZ or f8E5M2FNUZ") << ", or leave "
                                 << where.target << ":" << where.said << " out";
  return text;
}

/// Four elements of i4 are those of a lane among 64, eight of the sum are those of one among 32: half of the
/// product was left out.
std::optional<std::string> whyNotLanes(Operation *op) {
  auto product = dyn_cast<amdgpu::WMMAOp>(op);
  auto a = product ? dyn_cast<VectorType>(product.getSourceA().getType()) : VectorType();
  auto c = product ? dyn_cast<VectorType>(product.getDestC().getType()) : VectorType();
  if (!a || !c || !a.getElementType().isInteger(4) || a.getNumElements() != 4 || c.getNumElements() != 8)
    return std::nullopt;
  return "'amdgpu.wmma' has 4 elements of each matrix in a lane, as in waves of 64 lanes, and 8 of the sum, "
         "as in "
         "waves of 32: of those, give 8 elements of i4";
}

/// Whether memory is a block's or a thread's, as its space or where it comes from shows.
bool isLocal(Value memory) {
  Attribute space = cast<BaseMemRefType>(memory.getType()).getMemorySpace();
  if (auto named = dyn_cast_or_null<gpu::AddressSpaceAttr>(space))
    return named.getValue() != gpu::AddressSpace::Global;
  if (auto number = dyn_cast_or_null<IntegerAttr>(space))
    return number.getInt() == 3 || number.getInt() == 5; // of LLVM
  Operation *from = memory.getDefiningOp();
  if (auto view = dyn_cast_or_null<ViewLikeOpInterface>(from))
    return isa<BaseMemRefType>(view.getViewSource().getType()) && isLocal(view.getViewSource());
  return isa_and_nonnull<memref::AllocaOp>(from);
}

/// A descriptor has an address in global memory: one of a block's or a thread's meant something else there.
std::optional<std::string> whyNotGlobal(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (name != "amdgpu.fat_raw_buffer_cast" && !name.starts_with("amdgpu.raw_buffer_"))
    return std::nullopt;
  for (Value operand : op->getOperands())
    if (isa<BaseMemRefType>(operand.getType()) && isLocal(operand))
      return ("'" + name +
              "' describes global memory, and this is a block's or a thread's: use memref.load, " +
              "memref.store and memref.atomic_rmw")
          .str();
  return std::nullopt;
}

std::optional<std::string> whyNotAmd(Operation *op, const ChipName &where) {
  FailureOr<Chipset> chip = Chipset::parse(where.chip);
  if (failed(chip))
    return std::nullopt;
  StringRef name = op->getName().getStringRef();
  if (auto why = whyNotFormat(op, *chip, where))
    return why;
  if (auto why = whyNotGlobal(op))
    return why;
  if (auto why = whyNotLanes(op))
    return why;
  if (auto dpp = dyn_cast<amdgpu::DPPOp>(op); dpp && is10(*chip)) {
    StringRef kind = amdgpu::stringifyDPPPerm(dpp.getKind());
    if (kind.starts_with("wave_") || kind.starts_with("row_bcast_"))
      return needsChip("amdgpu.dpp " + kind.str(), "a chip of gfx9", where);
  }
  for (const ChipRule &rule : kAmd)
    if (fits(rule.name, name)) {
      if (!rule.has(*chip))
        return needsChip(name, rule.wanted, where);
      break;
    }
  return whyNotOperands(op, *chip, where);
}

} // namespace

std::string needsChip(StringRef name, const Twine &wanted, const ChipName &where) {
  return ("'" + name + "' needs " + wanted + " and is built for " + where.said +
          " here: build for such a chip, " + "or leave " + where.target + ":" + where.said + " out")
      .str();
}

std::optional<std::string> whyNotInstruction(Operation *op) {
  auto mma = dyn_cast<NVVM::MmaOp>(op);
  if (!mma || !mma.getMultiplicandAPtxType() || !mma.getMultiplicandBPtxType())
    return std::nullopt;
  NVVM::MMAShapeAttr shape = mma.getShape();
  NVVM::MMATypes a = *mma.getMultiplicandAPtxType(), b = *mma.getMultiplicandBPtxType();
  NVVM::MMATypes c = mma.accumPtxType(), d = mma.resultPtxType();
  if (NVVM::MmaOp::getIntrinsicID(shape.getM(), shape.getN(), uint64_t(shape.getK()), mma.getB1Op(),
                                  mma.getIntOverflowBehavior(), mma.getLayoutA(), mma.getLayoutB(), a, b, c,
                                  d) != llvm::Intrinsic::not_intrinsic)
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream(text) << "no instruction makes this product: of shape m" << shape.getM() << "n"
                                 << shape.getN() << "k" << shape.getK() << ", of "
                                 << NVVM::stringifyMMATypes(a) << " and " << NVVM::stringifyMMATypes(b)
                                 << ", added to " << NVVM::stringifyMMATypes(c) << ", giving "
                                 << NVVM::stringifyMMATypes(d)
                                 << "; PTX lists shapes, types and layouts under mma";
  return text;
}

bool takesFromLanes(Operation *op) {
  return isa<amdgpu::DPPOp, amdgpu::PermlaneSwapOp, amdgpu::SwizzleBitModeOp>(op);
}

std::optional<unsigned> numberOfSpace(Attribute space) {
  auto buffer = dyn_cast_or_null<amdgpu::AddressSpaceAttr>(space);
  if (!buffer)
    return std::nullopt;
  switch (buffer.getValue()) {
  case amdgpu::AddressSpace::FatRawBuffer:
    return 7;
  case amdgpu::AddressSpace::BufferRsrc:
    return 8;
  case amdgpu::AddressSpace::FatStructuredBuffer:
    return 9;
  }
  return std::nullopt;
}

bool describesMemory(Operation *op) {
  return isa<amdgpu::FatRawBufferCastOp, amdgpu::RawBufferLoadOp, amdgpu::RawBufferStoreOp>(op);
}

StringRef ownerOf(StringRef dialect) {
  const Owner *owner = find(dialect);
  return owner ? owner->owner : StringRef();
}

StringRef targetOf(StringRef dialect) {
  const Owner *owner = find(dialect);
  return owner ? owner->target : StringRef();
}

std::optional<std::string> whyNotFor(Operation *op, const ChipName &where) {
  if (where.target.empty() || op->hasAttr(kChanged)) // the text that it is for is told
    return std::nullopt;
  const Owner *owner = find(op->getName().getDialectNamespace());
  if (owner && owner->target != where.target)
    return foreign("'" + op->getName().getStringRef() + "' is an operation", *owner, where);
  if (auto product = dyn_cast<gpu::SubgroupMmaComputeOp>(op))
    if (auto why = whyNotLayouts(product, where.target != "nvvm"))
      return why;
  if (where.target == "nvvm")
    return whyNotNvidia(op, where);
  if (where.target == "rocdl")
    return whyNotAmd(op, where);
  if (where.target != "host" && op->getName().getStringRef().starts_with("gpu.subgroup_mma"))
    return "'" + op->getName().getStringRef().str() +
           "' is lowered for the targets nvvm, rocdl and host, and not for " + where.target +
           ": build this module for those, or give the other target a kernel of its own";
  return std::nullopt;
}

std::optional<std::string> whyNotFor(Type type, const ChipName &where) {
  if (where.target.empty())
    return std::nullopt;
  StringRef dialect = type.getDialect().getNamespace();
  if (auto memory = dyn_cast<BaseMemRefType>(type))
    if (Attribute space = memory.getMemorySpace())
      dialect = space.getDialect().getNamespace();
  const Owner *owner = find(dialect);
  if (!owner || owner->target == where.target)
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return foreign("'" + text + "' is a type", *owner, where);
}

} // namespace offload
