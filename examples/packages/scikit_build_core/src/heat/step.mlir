// One step of the heat equation in a rod; its ends keep their temperature.
func.func @step(%r: f32, %now: memref<?xf32>, %next: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %n = memref.dim %now, %c0 : memref<?xf32>
  %last = arith.subi %n, %c1 : index
  scf.parallel (%i) = (%c1) to (%last) step (%c1) {
    %left_of = arith.subi %i, %c1 : index
    %right_of = arith.addi %i, %c1 : index
    %here = memref.load %now[%i] : memref<?xf32>
    %left = memref.load %now[%left_of] : memref<?xf32>
    %right = memref.load %now[%right_of] : memref<?xf32>
    %around = arith.addf %left, %right : f32
    %twice = arith.mulf %two, %here : f32
    %bend = arith.subf %around, %twice : f32
    %flow = arith.mulf %r, %bend : f32
    %then = arith.addf %here, %flow : f32
    memref.store %then, %next[%i] : memref<?xf32>
  }
  return
}
