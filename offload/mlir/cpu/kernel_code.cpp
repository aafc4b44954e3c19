//===- kernel_code.cpp - One thread's code on its way to running whole blocks //

#include "cpu/kernel_code.h"
#include "names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace offload {

KernelCode::KernelCode(Function &kernel, uint32_t maxThreads, const HostWay &way)
    : kernel(kernel), module(*kernel.getParent()), context(kernel.getContext()), types(context),
      maxThreads(maxThreads), warpSize(way.warpSize), strips(way.strips), subprogram(kernel.getSubprogram()) {
  layoutSharedMemory();
  for (auto [name, sizes] : {std::pair(kKnownBlock, &knownBlock), std::pair(kKnownCluster, &knownCluster)}) {
    StringRef text = kernel.getFnAttribute(name).getValueAsString();
    for (uint32_t &size : *sizes)
      if (!text.consumeInteger(10, size))
        text.consume_front(",");
  }
}

Constant *KernelCode::knownSize(unsigned axis) const {
  return knownBlock[axis] ? ConstantInt::get(types.i32, knownBlock[axis]) : nullptr;
}

bool KernelCode::waits() const {
  return usesStandIn(kBarrier) || usesStandIn(kExchange) || usesStandIn(kActiveLanes);
}

bool KernelCode::usesStandIn(StringRef name) const {
  Function *standIn = module.getFunction(name);
  return standIn && any_of(standIn->users(), [&](User *user) {
           auto *call = dyn_cast<CallInst>(user);
           return call && call->getFunction() == &kernel;
         });
}

Constant *KernelCode::parameterSizes() {
  SmallVector<uint32_t> sizes;
  for (Argument &argument : kernel.args())
    sizes.push_back(uint32_t(module.getDataLayout().getTypeStoreSize(
        argument.hasByRefAttr() ? argument.getParamByRefType() : argument.getType())));
  Constant *table = ConstantDataArray::get(context, sizes);
  return new GlobalVariable(module, table->getType(), /*isConstant=*/true, GlobalValue::InternalLinkage,
                            table, kernel.getName() + ".sizes");
}

/// Replaces a global in one function by a pointer to something else. Globals of the LLVM dialect have a
/// memory space of their own.
static void replaceUses(GlobalVariable &global, const Function &in,
                        function_ref<Value *(IRBuilder<> &)> make) {
  SmallVector<Use *> uses;
  for (Use &use : global.uses())
    if (auto *user = dyn_cast<Instruction>(use.getUser()); user && user->getFunction() == &in)
      uses.push_back(&use);
  for (Use *use : uses) {
    auto *user = cast<Instruction>(use->getUser());
    Instruction *before = user;
    if (auto *phi = dyn_cast<PHINode>(user))
      before = phi->getIncomingBlock(*use)->getTerminator();
    IRBuilder<> b(before);
    use->set(b.CreateAddrSpaceCast(make(b), global.getType()));
  }
}

/// Gives each workgroup global that the kernel uses a place in the block's workgroup memory. One without a
/// size is another name of the dynamic part.
void KernelCode::layoutSharedMemory() {
  SmallVector<Constant *> globals;
  for (GlobalVariable &global : module.globals())
    if (global.getName().starts_with(kSharedPrefix))
      globals.push_back(&global);
  convertUsersOfConstantsToInstructions(globals, &kernel);
  for (Constant *constant : globals) {
    auto *global = cast<GlobalVariable>(constant);
    bool used = any_of(global->users(), [&](User *user) {
      auto *instruction = dyn_cast<Instruction>(user);
      return instruction && instruction->getFunction() == &kernel;
    });
    if (!used)
      continue;
    uint64_t bytes = module.getDataLayout().getTypeAllocSize(global->getValueType());
    if (bytes == 0) {
      FunctionCallee dynamic = module.getOrInsertFunction(kDynamicShared, types.pointer);
      replaceUses(*global, kernel, [&](IRBuilder<> &b) { return b.CreateCall(dynamic, {}); });
      continue;
    }
    uint64_t alignment = std::max<uint64_t>(64, global->getAlign().valueOrOne().value());
    sharedBytes = alignTo(sharedBytes, alignment);
    sharedOffsets.push_back({global, sharedBytes});
    sharedBytes += bytes;
  }
  sharedBytes = alignTo(sharedBytes, 64);
}

Value *KernelCode::field(IRBuilder<> &b, StructType *type, Value *base, unsigned index,
                         unsigned element) const {
  Value *address = b.CreateConstInBoundsGEP2_32(type, base, 0, index);
  if (isa<ArrayType>(type->getElementType(index)))
    return b.CreateLoad(types.i32, b.CreateConstInBoundsGEP1_32(types.i32, address, element));
  return b.CreateLoad(type->getElementType(index), address);
}

SmallVector<Value *> KernelCode::loadArguments(IRBuilder<> &b, Value *launch) const {
  // Vectors lie wherever who launches has them: host code aligns what it passes to 16 bytes, others to less.
  const Align most(8);
  const DataLayout &layout = module.getDataLayout();
  auto read = [&](Argument &argument, Value *passed) {
    Align own = layout.getABITypeAlign(argument.getType());
    return b.CreateAlignedLoad(argument.getType(), passed, std::min(own, most), argument.getName());
  };
  Value *params = field(b, types.launch, launch, LaunchParams);
  SmallVector<Value *> values;
  for (Argument &argument : kernel.args()) {
    Value *slot = b.CreateConstInBoundsGEP1_32(types.pointer, params, argument.getArgNo());
    Value *passed = b.CreateLoad(types.pointer, slot);
    values.push_back(argument.hasByRefAttr()
                         ? b.CreateAddrSpaceCast(passed, argument.getType(), argument.getName())
                         : read(argument, passed));
  }
  markArrays(values);
  return values;
}

void KernelCode::markArrays(ArrayRef<Value *> arguments) const {
  SmallVector<StringRef> arrays;
  kernel.getFnAttribute(kArrays).getValueAsString().split(arrays, ',', -1, /*KeepEmpty=*/false);
  for (StringRef array : arrays) {
    unsigned number = 0, rank = 0;
    auto [first, second] = array.split(':');
    if (first.getAsInteger(10, number) || second.getAsInteger(10, rank) || number >= arguments.size() ||
        !arguments[number]->getType()->isPointerTy() || number + 1 + rank >= arguments.size())
      continue; // written by someone else
    Metadata *values[] = {ConstantAsMetadata::get(ConstantInt::get(types.i32, number)),
                          ConstantAsMetadata::get(ConstantInt::get(types.i32, rank)),
                          ConstantAsMetadata::get(ConstantInt::get(
                              types.i32, arguments[number + 1]->getType()->getIntegerBitWidth()))};
    cast<Instruction>(arguments[number])->setMetadata(kArray, MDNode::get(context, values));
  }
}

void KernelCode::loadDims(IRBuilder<> &b, Place &place) const {
  // The runtime lets no other launch through. That products of these do not overflow is what lets loops over
  // threads be clamped to the bounds that kernels check.
  MDBuilder ranges(context);
  auto atMost = [&](Value *size, uint32_t most) {
    MDNode *range = ranges.createRange(APInt(32, 1), APInt(32, most + 1));
    cast<Instruction>(size)->setMetadata(LLVMContext::MD_range, range);
    return size;
  };
  for (unsigned i = 0; i < 3; ++i) {
    place.blockDim[i] = knownSize(i);
    if (!place.blockDim[i])
      place.blockDim[i] = atMost(field(b, types.launch, place.launch, LaunchBlock, i), i == 2 ? 64 : 1024);
    place.gridDim[i] =
        atMost(field(b, types.launch, place.launch, LaunchGrid, i), i == 0 ? INT32_MAX : 65535);
    place.clusterDim[i] = field(b, types.launch, place.launch, LaunchCluster, i);
  }
}

Function *KernelCode::cloneBody(ArrayRef<Type *> extra, const Twine &suffix) {
  SmallVector<Type *> parameters;
  for (Argument &argument : kernel.args())
    parameters.push_back(argument.getType());
  append_range(parameters, extra);
  auto *type = FunctionType::get(types.voidType, parameters, false);
  auto *body = Function::Create(type, GlobalValue::InternalLinkage, kernel.getName() + suffix, module);
  ValueToValueMapTy map;
  for (Argument &argument : kernel.args())
    map[&argument] = body->getArg(argument.getArgNo());
  SmallVector<ReturnInst *> returns;
  CloneFunctionInto(body, &kernel, map, CloneFunctionChangeType::LocalChangesOnly, returns);
  body->setDSOLocal(true);       // the clone took over the external kernel's property
  kernel.setSubprogram(nullptr); // line information describes one function, and this is the one that stays
  return body;
}

void KernelCode::drop(Function *body) {
  kernel.setSubprogram(subprogram); // the clone's is one of its own, which the kernel's code does not know
  body->eraseFromParent();
}

void replaceCalls(Function &in, const Twine &name, function_ref<Value *(CallInst &)> make) {
  Function *standIn = in.getParent()->getFunction(name.str());
  if (!standIn)
    return;
  for (User *user : make_early_inc_range(standIn->users())) {
    auto *call = dyn_cast<CallInst>(user);
    if (!call || call->getFunction() != &in)
      continue;
    if (Value *value = make(*call))
      call->replaceAllUsesWith(value);
    call->eraseFromParent();
  }
}

void KernelCode::bind(Function &body, const Place &place) const {
  for (unsigned i = 0; i < 3; ++i) {
    if (place.threadId[i])
      replaceCalls(body, Twine(kThreadId) + kAxes[i], [&](CallInst &) { return place.threadId[i]; });
    replaceCalls(body, Twine(kBlockId) + kAxes[i], [&](CallInst &) { return place.blockId[i]; });
    replaceCalls(body, Twine(kBlockDim) + kAxes[i], [&](CallInst &) { return place.blockDim[i]; });
    replaceCalls(body, Twine(kGridDim) + kAxes[i], [&](CallInst &) { return place.gridDim[i]; });
    replaceCalls(body, Twine(kClusterDim) + kAxes[i], [&](CallInst &) { return place.clusterDim[i]; });
  }
  replaceCalls(body, kFail, [&](CallInst &call) { return fail(call, place); });
  bindSharedMemory(body, place.shared);
  makeBlockAtomicsPlain(body, place.shared);
  for (Instruction &instruction : instructions(body))
    if (const Value *address = getLoadStorePointerOperand(&instruction);
        address && getUnderlyingObject(address) == place.shared)
      instruction.setMetadata(kInBlock, MDNode::get(context, {}));
}

void KernelCode::bindSharedMemory(Function &body, Value *shared) const {
  replaceCalls(body, kDynamicShared, [&](CallInst &call) -> Value * {
    return IRBuilder<>(&call).CreateConstInBoundsGEP1_64(types.i8, shared, sharedBytes);
  });
  for (auto &[global, offset] : sharedOffsets)
    replaceUses(*global, body, [&, offset = offset](IRBuilder<> &b) {
      return b.CreateConstInBoundsGEP1_64(types.i8, shared, offset);
    });
}

/// Ends the launch. What comes behind the call is cut off, so that it costs the rest of the kernel nothing.
Value *KernelCode::fail(CallInst &call, const Place &place) const {
  IRBuilder<> b(&call);
  SmallVector<Value *> arguments{place.launch, call.getArgOperand(0)};
  append_range(arguments, place.blockId);
  for (unsigned i = 0; i < 3; ++i)
    arguments.push_back(
        place.threadId[i]
            ? place.threadId[i]
            : b.CreateCall(module.getOrInsertFunction((Twine(kThreadId) + kAxes[i]).str(), types.i32), {}));
  SmallVector<Type *> parameters;
  for (Value *argument : arguments)
    parameters.push_back(argument->getType());
  auto *type = FunctionType::get(types.voidType, parameters, false);
  CallInst *end = b.CreateCall(type, field(b, types.launch, place.launch, LaunchFail), arguments);
  end->setDoesNotReturn();
  end->addFnAttr(Attribute::Cold);
  return nullptr;
}

} // namespace offload
