//===- lanes.h - How the threads of a subgroup see each other, per target -===//
#pragma once

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

#include <memory>

namespace offload {

/// What the rewrites of prepare_device.cpp need to know of a target. Every value that is built is an i32 but
/// for words, which have wordBits, and sets of lanes, which have `size` bits.
class Lanes {
public:
  explicit Lanes(unsigned size, unsigned wordBits) : size(size), wordBits(wordBits) {}
  virtual ~Lanes() = default;

  /// The caller's lane. `anchor` is an operation of the function that the code goes into.
  virtual mlir::Value lane(mlir::OpBuilder &b, mlir::Operation *anchor) const;
  /// The lanes that execute this together with the caller.
  virtual mlir::Value active(mlir::OpBuilder &b, mlir::Operation *anchor) const = 0;
  /// The word of lane `source`, which takes part: its bit is set in `takingPart`, as is the caller's. All
  /// lanes of that set execute this together, with the same set. A null set is the whole subgroup.
  virtual mlir::Value read(mlir::OpBuilder &b, mlir::Operation *anchor, mlir::Value word, mlir::Value source,
                           mlir::Value takingPart) const = 0;
  /// Whether the target has an instruction for shuffles of the whole subgroup by an offset that is known.
  virtual bool readsAcross(mlir::gpu::ShuffleMode) const { return false; }
  /// By that instruction: the word of the lane that is so far away, or the own one where there is no such
  /// lane.
  virtual mlir::Value readAcross(mlir::OpBuilder &, mlir::Operation * /*anchor*/, mlir::Value /*word*/,
                                 mlir::gpu::ShuffleMode, unsigned /*offset*/) const {
    return {};
  }
  /// Whether lanes that read must all be in one set: a lane alone in its set reads itself alone.
  virtual bool hasSets() const { return false; }
  /// Whether the target's lowering makes this reduction, which all lanes reach, one instruction.
  virtual bool reduces(mlir::gpu::SubgroupReduceOp) const { return false; }
  /// Whether this is the vendor's own exchange of values between lanes, of a type that its lowering does not
  /// know: it knows words.
  virtual bool exchangesWords(mlir::Operation *) const { return false; }
  /// Whether the target runs clusters of blocks; where not, each block is a cluster.
  virtual bool hasClusters() const { return false; }
  /// Whether an assertion has a lowering of MLIR's own.
  virtual bool hasAssertions() const { return false; }
  /// Prints by calls of the C library, which the other targets' lowerings do in their own way.
  virtual bool printsByLibrary() const { return false; }
  /// How many arguments one call of its printf takes.
  virtual unsigned mostPrinted() const { return ~0u; }
  /// Its printf takes widths and precisions from the arguments: %*d.
  virtual bool printsStars() const { return true; }

  const unsigned size;
  const unsigned wordBits;
};

/// For a target's name; null where there is none with such subgroups.
std::unique_ptr<Lanes> makeLanes(llvm::StringRef target, unsigned size, llvm::StringRef chip);

/// Cuts a value into words, makes each another word, and puts these together. The value is a number, a
/// complex one too, or a vector of numbers; a null value comes back for any other type.
mlir::Value throughWords(mlir::OpBuilder &b, mlir::Location loc, const Lanes &lanes, mlir::Value value,
                         llvm::function_ref<mlir::Value(mlir::Value)> each);

/// The dialect that the target's lanes need. Only this one: with another vendor's loaded, the lowering of
/// math for AMD prefers LLVM's intrinsics, for which there is no code, to the device libraries.
void addVendorDialect(mlir::DialectRegistry &registry, llvm::StringRef target);

} // namespace offload
