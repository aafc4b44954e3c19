//===- fused_pieces.cpp - Steps on the same rows, several elements at once --===//
//
// What a thread of a kernel of offload-fuse-rows does where it takes pieces of a row: neighbouring elements
// that it loads and stores at once. Of a row whose length is known it keeps in registers what a later step
// needs, and does not store what a later step writes over.
//
//===----------------------------------------------------------------------===//

#include "loops/fused_rows.h"
#include "loops/linalg_steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace offload {

// Wide loads that a thread has on their way at once. What it loads of a known number of pieces stays in
// registers anyway, or is added up.
constexpr size_t kLoads = 8, kLoadsOfKnown = 16, kLoadsBeforeStores = 4;

size_t FusedRows::piecesAtOnce() const {
  llvm::SmallDenseSet<Value> loaded, made;
  bool stores = false;
  auto loads = [&](const RowAccess &access) {
    bool isKept = !kept.empty() && find(access, kept.front());
    if (access.isAlongRow() && !made.contains(access.buffer) && !isKept)
      loaded.insert(access.memory);
  };
  for (const Pending &each : pending) {
    llvm::for_each(each.step->inputs, loads);
    if (each.step->sums)
      continue;
    stores = true;
    for (auto [i, output] : llvm::enumerate(each.step->outputs)) {
      if (isRead(*each.step, unsigned(i)))
        loads(output);
      made.insert(output.buffer);
    }
  }
  size_t most = stores ? kLoadsBeforeStores : wide->pieces ? kLoadsOfKnown : kLoads;
  return std::max<size_t>(1, most / std::max<size_t>(1, loaded.size()));
}

SmallVector<Value> FusedRows::doKnownPieces(SmallVector<Value> sums) {
  int64_t stride = threads.lanes * wide->width;
  Value first = arith::MulIOp::create(in, loc, threads.lane, index(in, wide->width));
  SmallVector<Piece> all;
  for (int64_t i = 0; i < *wide->pieces; ++i) {
    Piece piece{arith::AddIOp::create(in, loc, first, index(in, i * stride)), {}, size_t(i)};
    if ((i + 1) * stride > length) {
      piece.isThere =
          arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, piece.first, index(in, length));
      piece.first = arith::SelectOp::create(in, loc, piece.isThere, piece.first, zero);
    }
    if (!wide->areBlocks)
      piece.isThere = piece.isThere
                          ? arith::AndIOp::create(in, loc, piece.isThere, threads.exists).getResult()
                          : threads.exists;
    all.push_back(piece);
  }
  kept.resize(all.size());
  size_t together = piecesAtOnce();
  for (size_t i = 0; i < all.size(); i += together)
    sums = doPiecesAtOnce(in, ArrayRef(all).slice(i, std::min(together, all.size() - i)), sums);
  return sums;
}

SmallVector<Value> FusedRows::doPieces(SmallVector<Value> sums) {
  int64_t stride = threads.lanes * wide->width, together = int64_t(piecesAtOnce());
  auto loopOver = [&](Value from, Value behind, int64_t count, ValueRange handed) {
    SmallVector<Value> carried{from};
    llvm::append_range(carried, handed);
    Value step = index(in, count * stride);
    auto loop = scf::ForOp::create(
        in, loc, from, behind, step, carried, [&](OpBuilder &body, Location, Value first, ValueRange sofar) {
          SmallVector<Piece> some;
          for (int64_t i = 0; i < count; ++i)
            some.push_back({arith::AddIOp::create(body, loc, first, index(body, i * stride)), {}, {}});
          SmallVector<Value> next{arith::AddIOp::create(body, loc, first, step)};
          llvm::append_range(next, doPiecesAtOnce(body, some, llvm::to_vector(sofar.drop_front())));
          scf::YieldOp::create(body, loc, next);
        });
    return SmallVector<Value>(loop.getResults());
  };
  Value first = arith::MulIOp::create(in, loc, threads.lane, index(in, wide->width));
  // May be less than zero, where there are fewer.
  Value most = arith::SubIOp::create(in, loc, until, index(in, (together - 1) * stride));
  SmallVector<Value> many = loopOver(first, most, together, sums);
  SmallVector<Value> rest = loopOver(many.front(), until, 1, ArrayRef(many).drop_front());
  return SmallVector<Value>(llvm::drop_begin(rest));
}

SmallVector<Value> FusedRows::doPiecesAtOnce(OpBuilder &body, ArrayRef<Piece> some, SmallVector<Value> sums) {
  SmallVector<SmallVector<Held>> here(some.size());
  for (auto [piece, held] : llvm::zip_equal(some, here)) {
    SmallVector<Value> made; // buffers
    for (const Pending &each : pending) {
      for (const RowAccess &input : each.step->inputs)
        if (input.isAlongRow() && !llvm::is_contained(made, input.buffer))
          (void)elementsOf(body, input, piece, held);
      if (each.step->sums)
        continue;
      for (auto [i, output] : llvm::enumerate(each.step->outputs)) {
        if (isRead(*each.step, unsigned(i)) && !llvm::is_contained(made, output.buffer))
          (void)elementsOf(body, output, piece, held);
        made.push_back(output.buffer);
      }
    }
  }
  for (auto [piece, held] : llvm::zip_equal(some, here))
    sums = doPiece(body, piece, held, sums);
  return sums;
}

const FusedRows::Held *FusedRows::find(const RowAccess &access, ArrayRef<Held> held) const {
  const Held *found = llvm::find_if(held, [&](const Held &each) {
    return each.access->buffer == access.buffer &&
           (isWritten(access.buffer) ||
            (each.access->memory == access.memory && each.access->place == access.place));
  });
  return found == held.end() ? nullptr : found;
}

SmallVector<Value> FusedRows::elementsOf(OpBuilder &body, const RowAccess &access, const Piece &piece,
                                         SmallVector<Held> &here) {
  if (const Held *held = find(access, here))
    return held->values;
  if (piece.number)
    if (const Held *held = find(access, kept[*piece.number]))
      return held->values;
  SmallVector<Value> values = wide->load(body, loc, access.memory, at(access.place, piece.first));
  hold(access, values, piece, here);
  return values;
}

void FusedRows::hold(const RowAccess &access, SmallVector<Value> values, const Piece &piece,
                     SmallVector<Held> &here) {
  auto put = [&](SmallVector<Held> &held) {
    if (const Held *known = find(access, held))
      held.erase(held.begin() + (known - held.data()));
    held.push_back({&access, values});
  };
  put(here);
  if (piece.number)
    put(kept[*piece.number]);
}

void FusedRows::forgetOthers(const RowAccess &written, const Piece &piece, SmallVector<Held> &here) {
  auto forget = [&](SmallVector<Held> &held) {
    llvm::erase_if(held, [&](const Held &each) {
      return each.access->buffer != written.buffer && !between.contains(each.access->buffer) &&
             mayOverlap(each.access->buffer, written.buffer);
    });
  };
  forget(here);
  if (piece.number)
    forget(kept[*piece.number]);
}

SmallVector<Value> FusedRows::doPiece(OpBuilder &body, const Piece &piece, SmallVector<Held> &here,
                                      SmallVector<Value> sums) {
  size_t width = size_t(wide->width);
  SmallVector<Value> numbers;
  for (size_t i = 0; i < width; ++i)
    numbers.push_back(i ? arith::AddIOp::create(body, loc, piece.first, index(body, int64_t(i))).getResult()
                        : piece.first);
  size_t sum = 0;
  for (const Pending &made : pending) {
    SmallVector<SmallVector<Value>> inputs(width), before(width);
    for (auto [input, value] : llvm::zip_equal(made.step->inputs, made.inputs)) {
      SmallVector<Value> values =
          value ? SmallVector<Value>(width, value) : elementsOf(body, input, piece, here);
      for (size_t i = 0; i < width; ++i)
        inputs[i].push_back(values[i]);
    }
    if (const std::optional<LinalgSteps> &steps = made.step->sums) {
      SmallVector<SmallVector<Value>> values; // of each element
      for (size_t i = 0; i < width; ++i)
        values.push_back(steps->valuesOf(body, at(made.step->loops, numbers[i]), inputs[i]));
      for (unsigned output = 0; output < made.step->outputs.size(); ++output, ++sum) {
        for (size_t apart = 1; apart < width; apart *= 2) // neighbours first: few wait for each other
          for (size_t i = 0; i < width; i += 2 * apart)
            values[i][output] = steps->joined(body, output, values[i][output], values[i + apart][output]);
        Value joined = steps->joined(body, output, sums[sum], values[0][output]);
        sums[sum] = piece.isThere
                        ? arith::SelectOp::create(body, loc, piece.isThere, joined, sums[sum]).getResult()
                        : joined;
      }
      continue;
    }
    for (auto [i, output] : llvm::enumerate(made.step->outputs)) {
      SmallVector<Value> values(width);
      if (isRead(*made.step, unsigned(i)))
        values = elementsOf(body, output, piece, here);
      for (size_t element = 0; element < width; ++element)
        before[element].push_back(values[element]);
    }
    SmallVector<SmallVector<Value>> written(made.step->outputs.size());
    for (size_t i = 0; i < width; ++i)
      for (auto [output, value] :
           llvm::zip_equal(written, results(body, made, numbers[i], inputs[i], before[i])))
        output.push_back(value);
    for (auto [output, values] : llvm::zip_equal(made.step->outputs, written)) {
      forgetOthers(output, piece, here);
      hold(output, values, piece, here);
      if (!piece.number || !(between.contains(output.buffer) || isWrittenLater(*made.step, output.buffer)))
        storePiece(body, piece, output, values);
    }
  }
  return sums;
}

void FusedRows::storePiece(OpBuilder &body, const Piece &piece, const RowAccess &to, ValueRange values) {
  if (!piece.isThere)
    return wide->store(body, loc, values, to.memory, at(to.place, piece.first));
  scf::IfOp::create(body, loc, piece.isThere, [&](OpBuilder &then, Location) {
    wide->store(then, loc, values, to.memory, at(to.place, piece.first));
    scf::YieldOp::create(then, loc);
  });
}

bool FusedRows::isWrittenLater(const RowStep &step, Value buffer) const {
  auto sees = [&](const RowAccess &access) {
    return access.memory && access.buffer != buffer && mayOverlap(access.buffer, buffer);
  };
  if (llvm::any_of(step.outputs, sees)) // what is stored there may have to be there before
    return false;
  for (const RowStep &later : ArrayRef(rows.steps).drop_front(size_t(&step - rows.steps.data()) + 1)) {
    if (llvm::any_of(later.inputs, sees) || llvm::any_of(later.outputs, sees))
      return false;
    if (writes(later, buffer))
      return true;
  }
  return false;
}

} // namespace offload
