//===- spread_fragments.cpp - offload-spread-fragments ----------------------===//
//
// gpu.subgroup_mma for AMD GPUs and the CPU, where MLIR 22 has no lowering: a matrix becomes a vector in each
// lane (fragments.h), loads and stores those of its elements, a product AMD's instruction for it.
//
// The operations are those of NVIDIA's warps, and programs are written for warps: threads that name the same
// matrix are 32. So on wider subgroups 32 lanes are a group here, and matrix units for 64 lanes are used
// where it can be seen that all 64 ask for the same: where not, the lanes of a group do it by themselves, and
// a warning says why.
//
//===----------------------------------------------------------------------===//

#include "device/fragments.h"
#include "device/prepare_device.h"
#include "passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/AMDGPU/IR/AMDGPUDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/ControlFlow/Transforms/StructuralTypeConversions.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace offload {
namespace {

constexpr int64_t kWarp = 32;

bool isFragment(Type type) { return isa<gpu::MMAMatrixType>(type); }

bool isOnFragments(Operation *op) { return op->getName().getStringRef().starts_with("gpu.subgroup_mma"); }

/// Whether it takes or makes a matrix.
bool hasFragment(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), isFragment) || llvm::any_of(op->getResultTypes(), isFragment);
}

bool isSum(Type type) { return cast<gpu::MMAMatrixType>(type).getOperand() == "COp"; }

Value index(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// A matrix in memory, by rows as the program sees them: element (i, j) lies i * leadDimension + j behind
/// what the indices name.
struct InMemory {
  InMemory(OpBuilder &b, Location loc, Value memory, ValueRange indices, int64_t lead, bool isTransposed)
      : b(b), loc(loc), isTransposed(isTransposed) {
    auto parts = memref::ExtractStridedMetadataOp::create(b, loc, memory);
    Value offset = parts.getOffset();
    for (auto [number, stride] : llvm::zip_equal(indices, parts.getStrides()))
      offset = arith::AddIOp::create(b, loc, offset, arith::MulIOp::create(b, loc, number, stride));
    auto type = cast<MemRefType>(memory.getType());
    int64_t any = ShapedType::kDynamic;
    auto layout = StridedLayoutAttr::get(b.getContext(), any, {lead, 1});
    // How large it is does not matter to what is made of it.
    auto view = MemRefType::get({lead, lead}, type.getElementType(), layout, type.getMemorySpace());
    SmallVector<OpFoldResult> sizes(2, b.getIndexAttr(lead)),
        strides{b.getIndexAttr(lead), b.getIndexAttr(1)};
    matrix = memref::ReinterpretCastOp::create(b, loc, view, parts.getBaseBuffer(), OpFoldResult(offset),
                                               sizes, strides);
  }

  SmallVector<Value> at(Value row, Value column) const {
    return isTransposed ? SmallVector<Value>{column, row} : SmallVector<Value>{row, column};
  }

  OpBuilder &b;
  Location loc;
  bool isTransposed;
  Value matrix;
};

/// Where the elements of the caller's lane are.
struct Own {
  Own(OpBuilder &b, Location loc, const Fragments &fragments, gpu::MMAMatrixType type)
      : layout(fragments.layoutOf(type)) {
    Value lane = fragments.lane(b, loc),
          most = index(b, loc, layout.linesFirst ? layout.lines : layout.parts);
    Value slow = arith::DivUIOp::create(b, loc, lane, most),
          fast = arith::RemUIOp::create(b, loc, lane, most);
    line = layout.linesFirst ? fast : slow;
    Value part = layout.linesFirst ? slow : fast;
    if (layout.linesFirst)
      part = arith::RemUIOp::create(b, loc, part, index(b, loc, layout.parts));
    first = arith::MulIOp::create(b, loc, part, index(b, loc, layout.between));
  }
  /// The row and the column of an element of the lane.
  std::pair<Value, Value> at(OpBuilder &b, Location loc, int64_t number) const {
    Value along = arith::AddIOp::create(b, loc, first, index(b, loc, number * layout.step));
    return layout.alongRow ? std::pair(line, along) : std::pair(along, line);
  }
  /// Whether they are neighbours in memory.
  bool areOnePiece(bool isTransposed) const { return layout.step == 1 && layout.alongRow != isTransposed; }

  FragmentLayout layout;
  Value line, first;
};

template <typename Op> struct Pattern : OpConversionPattern<Op> {
  Pattern(const TypeConverter &types, MLIRContext *context, const Fragments &fragments)
      : OpConversionPattern<Op>(types, context), fragments(fragments) {}
  const Fragments &fragments;
};

struct Load : Pattern<gpu::SubgroupMmaLoadMatrixOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(gpu::SubgroupMmaLoadMatrixOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    auto type = cast<gpu::MMAMatrixType>(op.getType());
    bool isTransposed = op.getTranspose().value_or(false);
    InMemory from(b, loc, adaptor.getSrcMemref(), adaptor.getIndices(), op.getLeadDimension().getSExtValue(),
                  isTransposed);
    Own own(b, loc, fragments, type);
    VectorType vector = fragments.vectorOf(type);
    if (own.areOnePiece(isTransposed)) {
      auto [row, column] = own.at(b, loc, 0);
      b.replaceOpWithNewOp<vector::LoadOp>(op, vector, from.matrix, from.at(row, column));
      return success();
    }
    SmallVector<Value> elements;
    for (int64_t i = 0; i < vector.getNumElements(); ++i) {
      auto [row, column] = own.at(b, loc, i);
      elements.push_back(memref::LoadOp::create(b, loc, from.matrix, from.at(row, column)));
    }
    b.replaceOpWithNewOp<vector::FromElementsOp>(op, vector, elements);
    return success();
  }
};

struct Store : Pattern<gpu::SubgroupMmaStoreMatrixOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(gpu::SubgroupMmaStoreMatrixOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    auto type = cast<gpu::MMAMatrixType>(op.getSrc().getType());
    bool isTransposed = op.getTranspose().value_or(false);
    InMemory to(b, loc, adaptor.getDstMemref(), adaptor.getIndices(), op.getLeadDimension().getSExtValue(),
                isTransposed);
    Own own(b, loc, fragments, type);
    if (own.areOnePiece(isTransposed)) {
      auto [row, column] = own.at(b, loc, 0);
      vector::StoreOp::create(b, loc, adaptor.getSrc(), to.matrix, to.at(row, column));
    } else
      for (int64_t i = 0; i < own.layout.elements; ++i) {
        auto [row, column] = own.at(b, loc, i);
        memref::StoreOp::create(b, loc, vector::ExtractOp::create(b, loc, adaptor.getSrc(), i), to.matrix,
                                to.at(row, column));
      }
    b.eraseOp(op);
    return success();
  }
};

struct Compute : Pattern<gpu::SubgroupMmaComputeOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(gpu::SubgroupMmaComputeOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOp(op, fragments.multiplied(b, op, adaptor.getOpA(), adaptor.getOpB(), adaptor.getOpC()));
    return success();
  }
};

struct Constant : Pattern<gpu::SubgroupMmaConstantMatrixOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(gpu::SubgroupMmaConstantMatrixOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOpWithNewOp<vector::BroadcastOp>(op, fragments.vectorOf(op.getType()), adaptor.getValue());
    return success();
  }
};

Value ofElements(OpBuilder &b, Location loc, gpu::MMAElementwiseOp kind, VectorType type, ValueRange of) {
  using Kind = gpu::MMAElementwiseOp;
  switch (kind) {
  case Kind::ADDF:
    return arith::AddFOp::create(b, loc, of[0], of[1]);
  case Kind::SUBF:
    return arith::SubFOp::create(b, loc, of[0], of[1]);
  case Kind::MULF:
    return arith::MulFOp::create(b, loc, of[0], of[1]);
  case Kind::DIVF:
    return arith::DivFOp::create(b, loc, of[0], of[1]);
  case Kind::MAXF:
    return arith::MaximumFOp::create(b, loc, of[0], of[1]);
  case Kind::MINF:
    return arith::MinimumFOp::create(b, loc, of[0], of[1]);
  case Kind::ADDI:
    return arith::AddIOp::create(b, loc, of[0], of[1]);
  case Kind::SUBI:
    return arith::SubIOp::create(b, loc, of[0], of[1]);
  case Kind::MULI:
    return arith::MulIOp::create(b, loc, of[0], of[1]);
  case Kind::DIVS:
    return arith::DivSIOp::create(b, loc, of[0], of[1]);
  case Kind::DIVU:
    return arith::DivUIOp::create(b, loc, of[0], of[1]);
  case Kind::NEGATEF:
    return arith::NegFOp::create(b, loc, of[0]);
  case Kind::NEGATES:
    return arith::SubIOp::create(b, loc, arith::ConstantOp::create(b, loc, b.getZeroAttr(type)), of[0]);
  case Kind::EXTF:
    return arith::ExtFOp::create(b, loc, type, of[0]);
  }
  llvm_unreachable("one of MLIR's kinds");
}

struct Elementwise : Pattern<gpu::SubgroupMmaElementwiseOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(gpu::SubgroupMmaElementwiseOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    VectorType type = fragments.vectorOf(cast<gpu::MMAMatrixType>(op.getType()));
    b.replaceOp(op, ofElements(b, op.getLoc(), op.getOpType(), type, adaptor.getArgs()));
    return success();
  }
};

struct Extract : Pattern<gpu::SubgroupMmaExtractThreadLocalOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(gpu::SubgroupMmaExtractThreadLocalOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOpWithNewOp<vector::ExtractOp>(op, adaptor.getMatrix(), OpFoldResult(adaptor.getIndices()[0]));
    return success();
  }
};

struct Insert : Pattern<gpu::SubgroupMmaInsertThreadLocalOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(gpu::SubgroupMmaInsertThreadLocalOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOpWithNewOp<vector::InsertOp>(op, adaptor.getValue(), adaptor.getMatrix(),
                                           OpFoldResult(adaptor.getIndices()[0]));
    return success();
  }
};

struct Select : Pattern<arith::SelectOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOpWithNewOp<arith::SelectOp>(op, adaptor.getCondition(), adaptor.getTrueValue(),
                                          adaptor.getFalseValue());
    return success();
  }
};

/// Which units multiply the matrices of a function, and if not those that the chip has, why.
class Choice {
public:
  Choice(FunctionOpInterface function, StringRef chip, int64_t subgroup) : subgroup(subgroup) {
    bool multiplies =
        function->walk([](gpu::SubgroupMmaComputeOp) { return WalkResult::interrupt(); }).wasInterrupted();
    units = multiplies ? unitsOf(chip) : MatrixUnits::None;
    if (units == MatrixUnits::None)
      return;
    WalkResult result = function->walk([&](Operation *op) -> WalkResult {
      return hasFragment(op) && !fits(op) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      units = MatrixUnits::None;
  }

  MatrixUnits units;
  Operation *reason = nullptr; // the operation for which they are not used,
  std::string why;             // and why not

private:
  bool fits(Operation *op) {
    auto product = dyn_cast<gpu::SubgroupMmaComputeOp>(op);
    auto hasPlace = [&](Type type) {
      auto matrix = dyn_cast<gpu::MMAMatrixType>(type);
      return !matrix || haveFragment(matrix);
    };
    if ((product && !haveProduct(units, product)) || !llvm::all_of(op->getOperandTypes(), hasPlace) ||
        !llvm::all_of(op->getResultTypes(), hasPlace))
      return because(op, "they have no product of these shapes and types");
    if (isa<gpu::SubgroupMmaExtractThreadLocalOp, gpu::SubgroupMmaInsertThreadLocalOp>(op)) {
      if (units == MatrixUnits::Mfma)
        return because(op, "a thread of 64 has half of the elements there that one of 32 has");
      if (units == MatrixUnits::Wmma11 &&
          !llvm::all_of(op->getOperandTypes(), [](Type type) { return !isFragment(type) || isSum(type); }))
        return because(op, "two threads have each element of a factor there");
    }
    if (units == MatrixUnits::Mfma) {
      std::optional<int64_t> threads = knownThreads(op);
      if (!threads || *threads % subgroup)
        return because(op,
                       "blocks do not have a known multiple of " + std::to_string(subgroup) +
                           " threads, which is a subgroup: launch such blocks, with constant sizes, or say "
                           "known_block_size");
      if (!wholeSubgroupsReach(op, subgroup))
        return because(op, "a part of a subgroup's " + std::to_string(subgroup) +
                               " threads may get here: branch by gpu.subgroup_id");
      for (Value operand : op->getOperands())
        if (!isFragment(operand.getType()) && (isOnFragments(op) || isa<arith::SelectOp>(op)) &&
            !isSameInSubgroup(operand, subgroup))
          return because(op, "a subgroup's " + std::to_string(subgroup) +
                                 " threads may name several matrices: name them by gpu.subgroup_id");
    } else if (subgroup != kWarp)
      return because(op, "they are for waves of 32 threads: build without wave64");
    return true;
  }

  bool because(Operation *op, std::string text) {
    reason = op;
    why = std::move(text);
    return false;
  }

  int64_t subgroup;
};

struct SpreadFragments : public PassWrapper<SpreadFragments, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SpreadFragments)

  SpreadFragments() = default;
  SpreadFragments(const SpreadFragments &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "offload-spread-fragments"; }
  StringRef getDescription() const final { return "Make matrices of gpu.subgroup_mma vectors in each lane"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
    if (target == "rocdl")
      registry.insert<amdgpu::AMDGPUDialect>();
  }

  void runOnOperation() final {
    SmallVector<FunctionOpInterface> functions;
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      if (hasFragments(function))
        functions.push_back(function);
    for (FunctionOpInterface function : functions)
      if (failed(check(function)))
        return signalPassFailure();
    for (FunctionOpInterface function : functions)
      if (failed(spread(function)))
        return signalPassFailure();
  }

  Option<std::string> target{*this, "target", llvm::cl::desc("the target's name in the registry")};
  Option<std::string> chip{*this, "chip", llvm::cl::desc("its chip")};
  Option<unsigned> subgroupSize{*this, "subgroup-size", llvm::cl::desc("threads of a subgroup"),
                                llvm::cl::init(32)};

private:
  LogicalResult spread(FunctionOpInterface function) {
    MLIRContext *context = &getContext();
    if (failed(writeLoopsOut(function)))
      return failure();
    Choice choice(function, chip, subgroupSize);
    if (choice.reason)
      choice.reason->emitWarning() << "'" << choice.reason->getName() << "' keeps '" << function.getName()
                                   << "' from the matrix units of " << chip
                                   << ", and each thread multiplies for itself: " << choice.why;
    if (target == "host")
      waitAtStores(function);
    bool isWide = choice.units == MatrixUnits::Mfma;
    Fragments fragments(choice.units, chip, isWide ? int64_t(subgroupSize) : kWarp);
    TypeConverter types;
    types.addConversion([](Type type) { return type; });
    types.addConversion([&](gpu::MMAMatrixType type) -> Type { return fragments.vectorOf(type); });
    RewritePatternSet patterns(context);
    ConversionTarget legal(*context);
    patterns.add<Load, Store, Compute, Constant, Elementwise, Extract, Insert, Select>(types, context,
                                                                                       fragments);
    scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns, legal);
    cf::populateCFStructuralTypeConversionsAndLegality(types, patterns, legal);
    legal.markUnknownOpDynamicallyLegal([](Operation *op) {
      return llvm::none_of(op->getOperandTypes(), isFragment) &&
             llvm::none_of(op->getResultTypes(), isFragment);
    });
    return applyPartialConversion(function, legal, std::move(patterns));
  }

  /// A matrix is stored by all threads of a subgroup at once. On the CPU they come one after the other, so
  /// all have loaded what they load before, and see what was stored after: an exchange of nothing makes them
  /// wait.
  void waitAtStores(FunctionOpInterface function) {
    std::unique_ptr<Lanes> all = makeLanes(target, subgroupSize, chip);
    SmallVector<gpu::SubgroupMmaStoreMatrixOp> stores;
    function->walk([&](gpu::SubgroupMmaStoreMatrixOp store) { stores.push_back(store); });
    for (gpu::SubgroupMmaStoreMatrixOp store : stores) {
      OpBuilder b(store);
      Value word = arith::ConstantIntOp::create(b, store.getLoc(), b.getIntegerType(all->wordBits), 0);
      Value lane = constant32(b, store.getLoc(), 0);
      all->read(b, store, word, lane, Value());
      b.setInsertionPointAfter(store);
      all->read(b, store, word, lane, Value());
    }
  }

  /// Loops and branches of the affine dialect that hand matrices on: no conversion knows their types. What is
  /// in them goes with them, as it may use their counters as only that dialect's operations do.
  static LogicalResult writeLoopsOut(FunctionOpInterface function) {
    bool has = false;
    function->walk([&](Operation *op) {
      has |=
          isa<affine::AffineForOp, affine::AffineIfOp>(op) && llvm::any_of(op->getResultTypes(), isFragment);
    });
    if (!has)
      return success();
    MLIRContext *context = function->getContext();
    RewritePatternSet patterns(context);
    populateAffineToStdConversionPatterns(patterns);
    populateAffineToVectorConversionPatterns(patterns);
    ConversionTarget legal(*context);
    legal.addIllegalOp<affine::AffineForOp, affine::AffineIfOp, affine::AffineParallelOp,
                       affine::AffineYieldOp, affine::AffineApplyOp, affine::AffineMinOp, affine::AffineMaxOp,
                       affine::AffineLoadOp, affine::AffineStoreOp, affine::AffinePrefetchOp,
                       affine::AffineVectorLoadOp, affine::AffineVectorStoreOp>();
    legal.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    return applyPartialConversion(function, legal, std::move(patterns));
  }

  static bool hasFragments(FunctionOpInterface function) {
    return llvm::any_of(function.getArgumentTypes(), isFragment) ||
           llvm::any_of(function.getResultTypes(), isFragment) ||
           function
               ->walk([](Operation *op) {
                 return hasFragment(op) ? WalkResult::interrupt() : WalkResult::advance();
               })
               .wasInterrupted();
  }

  static LogicalResult check(FunctionOpInterface function) {
    if (llvm::any_of(function.getArgumentTypes(), isFragment) ||
        llvm::any_of(function.getResultTypes(), isFragment))
      return function->emitError("function '")
             << function.getName()
             << "' takes or gives a matrix of gpu.subgroup_mma, which this target cannot: write what it does "
                "where it is called";
    WalkResult result = function->walk([&](Operation *op) -> WalkResult {
      auto refused = [&](const Twine &why) { return op->emitError("'") << op->getName() << "' " << why; };
      if (isa<CallOpInterface>(op) && hasFragment(op))
        return refused("hands a matrix of gpu.subgroup_mma to a function or takes one from it, which this "
                       "target cannot: write what the function does in its place");
      if (!isOnFragments(op) && !canCarry(op) && hasFragment(op))
        return refused(
            "cannot hand on a matrix of gpu.subgroup_mma for this target: scf.for, scf.if, scf.while, "
            "affine.for, affine.if, arith.select, cf.br and cf.cond_br can");
      for (Type type : op->getResultTypes())
        if (auto matrix = dyn_cast<gpu::MMAMatrixType>(type); matrix && !canBeShared(matrix))
          return refused("makes a matrix of ")
                 << matrix.getShape()[0] << " rows and " << matrix.getShape()[1]
                 << " columns, which 32 threads cannot share by equal parts of rows";
      for (Value operand : op->getOperands())
        if (auto memory = dyn_cast<MemRefType>(operand.getType());
            memory && isa<gpu::SubgroupMmaLoadMatrixOp, gpu::SubgroupMmaStoreMatrixOp>(op)) {
          if (!memory.getElementType().isIntOrFloat())
            return refused("takes memory of vectors only for nvvm: give it a memref of their elements");
          Type matrix = op->getNumResults() ? op->getResult(0).getType() : op->getOperand(0).getType();
          Type element = cast<gpu::MMAMatrixType>(matrix).getElementType(), has = memory.getElementType();
          if (element.isInteger() ? !has.isInteger(element.getIntOrFloatBitWidth()) : has != element)
            return refused("has a matrix of ")
                   << element << " and memory of " << has << ": give them the same type";
        }
      if (auto each = dyn_cast<gpu::SubgroupMmaElementwiseOp>(op))
        return checkElementwise(each);
      if (auto extract = dyn_cast<gpu::SubgroupMmaExtractThreadLocalOp>(op))
        return checkThreadLocal(op, extract.getMatrix(), extract.getIndices());
      if (auto insert = dyn_cast<gpu::SubgroupMmaInsertThreadLocalOp>(op))
        return checkThreadLocal(op, insert.getMatrix(), insert.getIndices());
      if (auto product = dyn_cast<gpu::SubgroupMmaComputeOp>(op); product && !isKnownProduct(product))
        return refused("multiplies matrices of shapes and types that no instruction of NVIDIA's takes: "
                       "m16n16k16, m32n8k16 and m8n32k16 of f16 (sums of f16 or f32), si8 and ui8 (i32), "
                       "m16n16k8 of f32 and m8n8k4 of f64 are those that there are");
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  static bool canBeShared(gpu::MMAMatrixType type) {
    int64_t rows = type.getShape()[0], columns = type.getShape()[1], elements = rows * columns / kWarp;
    return rows * columns % kWarp == 0 && elements && columns % elements == 0;
  }

  static bool canCarry(Operation *op) {
    return isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::YieldOp, scf::ConditionOp, affine::AffineForOp,
               affine::AffineIfOp, affine::AffineYieldOp, cf::BranchOp, cf::CondBranchOp, arith::SelectOp>(
        op);
  }

  static WalkResult checkThreadLocal(Operation *op, Value matrix, ValueRange indices) {
    if (indices.size() != 1)
      return op->emitError("'") << op->getName()
                                << "' takes one index here, the number of an element that a thread holds";
    if (!cast<gpu::MMAMatrixType>(matrix.getType()).getElementType().isSignlessIntOrFloat())
      return op->emitError("'") << op->getName() << "' has no lowering for " << matrix.getType()
                                << ": no operation takes its elements";
    return WalkResult::advance();
  }
};

} // namespace

void registerSpreadFragmentsPass() { PassRegistration<SpreadFragments>(); }

} // namespace offload
