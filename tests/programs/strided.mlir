// Memrefs with strides and offsets: as arguments, and as subviews that host code makes.
!any = memref<?x?xf32, strided<[?, ?], offset: ?>>
!run = memref<?xf32, strided<[?], offset: ?>>
!corner = memref<3x2xf32, strided<[8, 2], offset: 20>>
func.func @double(%x: !any) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %rows = memref.dim %x, %c0 : !any
  %cols = memref.dim %x, %c1 : !any
  scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %cols) step (%c1, %c1) {
    %v = memref.load %x[%i, %j] : !any
    %r = arith.mulf %v, %two : f32
    memref.store %r, %x[%i, %j] : !any
  }
  return
}
func.func @double_part(%x: memref<?xf32>, %start: index, %step: index, %count: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %part = memref.subview %x[%start][%count][%step] : memref<?xf32> to !run
  scf.parallel (%i) = (%c0) to (%count) step (%c1) {
    %v = memref.load %part[%i] : !run
    %r = arith.mulf %v, %two : f32
    memref.store %r, %part[%i] : !run
  }
  return
}
func.func @mark_corner(%x: memref<8x8xf32>) {
  %one = arith.constant 1.0 : f32
  %part = memref.subview %x[2, 4][3, 2][1, 2] : memref<8x8xf32> to !corner
  linalg.fill ins(%one : f32) outs(%part : !corner)
  return
}
