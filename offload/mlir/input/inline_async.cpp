//===- inline_async.cpp - offload-inline-async ----------------------------===//
//
// The async dialect says that a region may run at any time after its dependencies. This pass chooses the time
// at which it stands: host code stays on the calling thread, and what overlaps is the work on streams, whose
// tokens (gpu ops with `async`) pass through async values unchanged. An async.value<T> becomes a T; an
// async.token, complete where it is made, an i1; an async.group the memref of its count; async.func becomes
// func.func.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Async/IR/Async.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;

namespace offload {
namespace {

Value complete(OpBuilder &b, Location loc) { return arith::ConstantIntOp::create(b, loc, 1, 1); }

struct ExecutePattern : public OpConversionPattern<async::ExecuteOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(async::ExecuteOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Block *body = op.getBody();
    auto end = cast<async::YieldOp>(body->getTerminator());
    rewriter.inlineBlockBefore(body, op, adaptor.getBodyOperands());
    SmallVector<Value> results = {complete(rewriter, op.getLoc())};
    for (Value value : end.getOperands())
      results.push_back(rewriter.getRemappedValue(value));
    rewriter.eraseOp(end);
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct AwaitPattern : public OpConversionPattern<async::AwaitOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(async::AwaitOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op->getNumResults())
      rewriter.replaceOp(op, adaptor.getOperand());
    else
      rewriter.eraseOp(op);
    return success();
  }
};

struct CreateGroupPattern : public OpConversionPattern<async::CreateGroupOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(async::CreateGroupOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = MemRefType::get({}, rewriter.getIndexType());
    Value count = memref::AllocaOp::create(rewriter, loc, type);
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    memref::StoreOp::create(rewriter, loc, zero, count, ValueRange());
    rewriter.replaceOp(op, count);
    return success();
  }
};

/// The result is the number of members before.
struct AddToGroupPattern : public OpConversionPattern<async::AddToGroupOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(async::AddToGroupOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value count = adaptor.getGroup();
    Value rank = memref::LoadOp::create(rewriter, loc, count, ValueRange());
    Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    memref::StoreOp::create(rewriter, loc, arith::AddIOp::create(rewriter, loc, rank, one), count,
                            ValueRange());
    rewriter.replaceOp(op, rank);
    return success();
  }
};

struct AwaitAllPattern : public OpConversionPattern<async::AwaitAllOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(async::AwaitAllOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return success();
  }
};

struct FuncPattern : public OpConversionPattern<async::FuncOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(async::FuncOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    TypeConverter::SignatureConversion inputs(op.getNumArguments());
    SmallVector<Type> results;
    if (failed(typeConverter->convertSignatureArgs(op.getArgumentTypes(), inputs)) ||
        failed(typeConverter->convertTypes(op.getResultTypes(), results)))
      return failure();
    auto type = rewriter.getFunctionType(inputs.getConvertedTypes(), results);
    auto function = func::FuncOp::create(rewriter, op.getLoc(), op.getName(), type);
    function.setVisibility(op.getVisibility());
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      function->setAttr(attribute.getName(), attribute.getValue());
    if (auto attributes = op.getArgAttrsAttr())
      function.setArgAttrsAttr(attributes);
    rewriter.inlineRegionBefore(op.getBody(), function.getBody(), function.end());
    if (!function.isExternal() &&
        failed(rewriter.convertRegionTypes(&function.getBody(), *typeConverter, &inputs)))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
};

struct CallPattern : public OpConversionPattern<async::CallOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(async::CallOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> results;
    if (failed(typeConverter->convertTypes(op.getResultTypes(), results)))
      return failure();
    rewriter.replaceOpWithNewOp<func::CallOp>(op, op.getCallee(), results, adaptor.getOperands());
    return success();
  }
};

struct ReturnPattern : public OpConversionPattern<async::ReturnOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(async::ReturnOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    // Of the function's results the first may be a token, for which there is no operand.
    auto function = op->getParentOfType<FunctionOpInterface>();
    SmallVector<Value> values;
    if (function.getNumResults() > adaptor.getOperands().size())
      values.push_back(complete(rewriter, op.getLoc()));
    llvm::append_range(values, adaptor.getOperands());
    rewriter.replaceOpWithNewOp<func::ReturnOp>(op, values);
    return success();
  }
};

struct SelectPattern : public OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, adaptor.getCondition(), adaptor.getTrueValue(),
                                                 adaptor.getFalseValue());
    return success();
  }
};

struct InlineAsync : public PassWrapper<InlineAsync, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InlineAsync)

  StringRef getArgument() const final { return "offload-inline-async"; }
  StringRef getDescription() const final { return "Run regions of the async dialect where they stand"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, func::FuncDialect, memref::MemRefDialect>();
  }

  void runOnOperation() final {
    MLIRContext *context = &getContext();
    if (refusesRuntimeOperations())
      return signalPassFailure();
    TypeConverter types;
    types.addConversion([](Type type) { return type; });
    types.addConversion([context](async::TokenType) { return IntegerType::get(context, 1); });
    types.addConversion([&](async::ValueType type) { return types.convertType(type.getValueType()); });
    types.addConversion([context](async::GroupType) { return MemRefType::get({}, IndexType::get(context)); });

    RewritePatternSet patterns(context);
    patterns.add<ExecutePattern, AwaitPattern, CreateGroupPattern, AddToGroupPattern, AwaitAllPattern,
                 FuncPattern, CallPattern, ReturnPattern, SelectPattern>(types, context);
    ConversionTarget target(*context);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalDialect<async::AsyncDialect>();
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns, types);
    populateReturnOpTypeConversionPattern(patterns, types);
    populateCallOpTypeConversionPattern(patterns, types);
    populateBranchOpInterfaceTypeConversionPattern(patterns, types);
    scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns, target);
    target.addDynamicallyLegalOp<func::FuncOp>([&](func::FuncOp op) {
      return types.isSignatureLegal(op.getFunctionType()) && types.isLegal(&op.getBody());
    });
    target
        .addDynamicallyLegalOp<func::ReturnOp, func::CallOp, cf::BranchOp, cf::CondBranchOp, arith::SelectOp>(
            [&](Operation *op) { return types.isLegal(op); });
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }

  /// Says so at the first operation of the dialect's own run-time half.
  bool refusesRuntimeOperations() {
    return getOperation()
        ->walk([](Operation *op) {
          StringRef name = op->getName().stripDialect();
          bool runtime = isa<async::AsyncDialect>(op->getDialect()) &&
                         (name.starts_with("coro.") || name.starts_with("runtime."));
          if (!runtime)
            return WalkResult::advance();
          if (name == "runtime.is_error")
            op->emitOpError(
                "has nothing to tell: what fails in a region, as a cf.assert does, ends the call; "
                "leave it out");
          else
            op->emitOpError("belongs to MLIR's own lowering to coroutines: give the program before "
                            "async-to-async-runtime, with async.execute and async.await");
          return WalkResult::interrupt();
        })
        .wasInterrupted();
  }
};

} // namespace

void registerInlineAsyncPass() { PassRegistration<InlineAsync>(); }

} // namespace offload
