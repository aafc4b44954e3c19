// What `offload run` runs: kernels, MLIR's print functions, an entry of another name, entries that cannot be run.
func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}
func.func private @printF64(f64)
func.func private @printNewline()
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %x = memref.alloc() : memref<5xi32>
  scf.parallel (%i) = (%c0) to (%c5) step (%c1) {
    %sq = arith.muli %i, %i : index
    %v = arith.index_cast %sq : index to i32
    memref.store %v, %x[%i] : memref<5xi32>
  }
  %any = memref.cast %x : memref<5xi32> to memref<*xi32>
  func.call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  memref.dealloc %x : memref<5xi32>
  return
}
func.func @answer() -> i32 {
  %r = arith.constant 42 : i32
  return %r : i32
}
func.func @half() {
  %r = arith.constant 0.5 : f64
  func.call @printF64(%r) : (f64) -> ()
  func.call @printNewline() : () -> ()
  return
}
func.func @needs(%x: i32) {
  return
}
