// Loops, and the schedule that maps them to blocks and threads, of which a part is in a library.
module attributes {transform.with_named_sequence} {
  func.func @negate(%x: memref<8x48xf32>) {
    scf.forall (%i) in (8) {
      scf.forall (%j) in (48) {
        %v = memref.load %x[%i, %j] : memref<8x48xf32>
        %r = arith.negf %v : f32
        memref.store %r, %x[%i, %j] : memref<8x48xf32>
      } {mapping = [#gpu.thread<x>]}
    } {mapping = [#gpu.block<x>]}
    return
  }

  transform.named_sequence private @map(%function: !transform.any_op {transform.consumed})

  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %function = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.include @map failures(propagate) (%function) : (!transform.any_op) -> ()
    transform.yield
  }

  module @library attributes {transform.with_named_sequence} {
    transform.named_sequence @map(%function: !transform.any_op {transform.consumed}) {
      %launch = transform.gpu.map_forall_to_blocks %function generate_gpu_launch
          : (!transform.any_op) -> !transform.any_op
      %mapped = transform.gpu.map_nested_forall_to_threads %launch block_dims = [64, 1, 1]
          : (!transform.any_op) -> !transform.any_op
      transform.yield
    }
  }
}
