// Every print and verify function of MLIR's runner-utils, with values that are hard to print.
func.func private @printMemrefI8(memref<*xi8>) attributes {llvm.emit_c_interface}
func.func private @printMemrefI16(memref<*xi16>) attributes {llvm.emit_c_interface}
func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}
func.func private @printMemrefI64(memref<*xi64>) attributes {llvm.emit_c_interface}
func.func private @printMemrefInd(memref<*xindex>) attributes {llvm.emit_c_interface}
func.func private @printMemrefF16(memref<*xf16>) attributes {llvm.emit_c_interface}
func.func private @printMemrefBF16(memref<*xbf16>) attributes {llvm.emit_c_interface}
func.func private @printMemrefF32(memref<*xf32>)
func.func private @printMemrefF64(memref<*xf64>) attributes {llvm.emit_c_interface}
func.func private @printMemrefC32(memref<*xcomplex<f32>>) attributes {llvm.emit_c_interface}
func.func private @printMemrefC64(memref<*xcomplex<f64>>)
func.func private @printMemrefShapeF32(memref<*xf32>) attributes {llvm.emit_c_interface}
func.func private @printMemref2dF32(memref<?x?xf32>) attributes {llvm.emit_c_interface}
func.func private @printMemref0dF32(memref<f32>) attributes {llvm.emit_c_interface}
func.func private @printMemref1dI8(memref<?xi8>) attributes {llvm.emit_c_interface}
func.func private @printMemrefVector4x4xf32(memref<?x?xvector<4x4xf32>>) attributes {llvm.emit_c_interface}
func.func private @verifyMemRefF32(memref<*xf32>, memref<*xf32>) -> i64 attributes {llvm.emit_c_interface}
func.func private @verifyMemRefI8(memref<*xi8>, memref<*xi8>) -> i64 attributes {llvm.emit_c_interface}
func.func private @verifyMemRefBF16(memref<*xbf16>, memref<*xbf16>) -> i64 attributes {llvm.emit_c_interface}
func.func private @verifyMemRefC32(memref<*xcomplex<f32>>, memref<*xcomplex<f32>>) -> i64 attributes {llvm.emit_c_interface}
func.func private @printFlops(f64)
func.func private @printF16(i16)
func.func private @printU64(i64)
func.func private @printI64(i64)
func.func private @printF32(f32)
func.func private @printF64(f64)
func.func private @printNewline()
func.func private @printOpen()
func.func private @printClose()
func.func private @printComma()
memref.global "private" constant @i8 : memref<2x3xi8> = dense<[[65, 66, 67], [33, 97, 126]]>
memref.global "private" constant @i16 : memref<2xi16> = dense<[-32768, 7]>
memref.global "private" constant @i32 : memref<1x1x3xi32> = dense<[[[-1, 7, 8]]]>
memref.global "private" constant @i64 : memref<2x2x2xi64> = dense<[[[-1, 7], [8, 9]], [[1, 2], [3, 4]]]>
memref.global "private" constant @idx : memref<2xindex> = dense<[-1, 7]>
memref.global "private" constant @f16 : memref<9xf16> = dense<[1.5, -0.0, 6.0e-8, 65504.0, 0x7C00, 0xFC00, 0x7E00, 0xFE00, 0.333]>
memref.global "private" constant @bf16 : memref<8xbf16> = dense<[1.5, -0.0, 1.0e-40, 3.0e38, 0x7F80, 0xFF80, 0x7FC0, 0.333]>
memref.global "private" constant @f32 : memref<3x4xf32> = dense<[[1.0, 2.5, -0.0, 1.0e-40], [123456789.0, 0x7F800000, 0xFF800000, 0x7FC00000], [0xFFC00000, 0.1, 100000.0, 1000000.0]]>
memref.global "private" constant @f32b : memref<3x4xf32> = dense<[[1.0, 2.5, -0.0, 1.0e-40], [123456789.0, 0x7F800000, 0xFF800000, 0x7FC00000], [0xFFC00000, 0.2, 100000.0, 1000000.0]]>
memref.global "private" constant @f64 : memref<2x2x2x2xf64> = dense<[[[[1.0, 0.1],[2.0,3.14159265358979]],[[1.0e300,1.0e-310],[5.0,6.0]]],[[[7.0,8.0],[9.0,10.0]],[[11.0,12.0],[13.0,14.0]]]]>
memref.global "private" constant @z : memref<f32> = dense<4.25>
memref.global "private" constant @c32 : memref<2x1xcomplex<f32>> = dense<[[(1.0, -2.0)], [(0.1, 0x7F800000)]]>
memref.global "private" constant @c64 : memref<2xcomplex<f64>> = dense<[(1.0, -2.0), (0.1, 1.0e99)]>
memref.global "private" constant @c32b : memref<2x1xcomplex<f32>> = dense<[[(1.0, -2.5)], [(0.1, 0x7F800000)]]>
memref.global "private" constant @i8b : memref<2x3xi8> = dense<[[65, 66, 68], [33, 97, 126]]>
memref.global "private" constant @bf16b : memref<8xbf16> = dense<[1.5, 0.0, 1.0e-40, 3.0e37, 0x7F80, 0xFF80, 0x7FC0, 0.333]>
func.func @main() {
  %i8 = memref.get_global @i8 : memref<2x3xi8>
  %i8u = memref.cast %i8 : memref<2x3xi8> to memref<*xi8>
  call @printMemrefI8(%i8u) : (memref<*xi8>) -> ()
  %i16 = memref.get_global @i16 : memref<2xi16>
  %i16u = memref.cast %i16 : memref<2xi16> to memref<*xi16>
  call @printMemrefI16(%i16u) : (memref<*xi16>) -> ()
  %i32 = memref.get_global @i32 : memref<1x1x3xi32>
  %i32u = memref.cast %i32 : memref<1x1x3xi32> to memref<*xi32>
  call @printMemrefI32(%i32u) : (memref<*xi32>) -> ()
  %i64 = memref.get_global @i64 : memref<2x2x2xi64>
  %i64u = memref.cast %i64 : memref<2x2x2xi64> to memref<*xi64>
  call @printMemrefI64(%i64u) : (memref<*xi64>) -> ()
  %ix = memref.get_global @idx : memref<2xindex>
  %ixu = memref.cast %ix : memref<2xindex> to memref<*xindex>
  call @printMemrefInd(%ixu) : (memref<*xindex>) -> ()
  %f16 = memref.get_global @f16 : memref<9xf16>
  %f16u = memref.cast %f16 : memref<9xf16> to memref<*xf16>
  call @printMemrefF16(%f16u) : (memref<*xf16>) -> ()
  %bf16 = memref.get_global @bf16 : memref<8xbf16>
  %bf16u = memref.cast %bf16 : memref<8xbf16> to memref<*xbf16>
  call @printMemrefBF16(%bf16u) : (memref<*xbf16>) -> ()
  %f32 = memref.get_global @f32 : memref<3x4xf32>
  %f32u = memref.cast %f32 : memref<3x4xf32> to memref<*xf32>
  call @printMemrefF32(%f32u) : (memref<*xf32>) -> ()
  call @printMemrefShapeF32(%f32u) : (memref<*xf32>) -> ()
  call @printNewline() : () -> ()
  %sub = memref.subview %f32[1, 1][2, 2][1, 2] : memref<3x4xf32> to memref<2x2xf32, strided<[4, 2], offset: 5>>
  %subu = memref.cast %sub : memref<2x2xf32, strided<[4, 2], offset: 5>> to memref<*xf32>
  call @printMemrefF32(%subu) : (memref<*xf32>) -> ()
  %f32d = memref.cast %f32 : memref<3x4xf32> to memref<?x?xf32>
  call @printMemref2dF32(%f32d) : (memref<?x?xf32>) -> ()
  %z = memref.get_global @z : memref<f32>
  call @printMemref0dF32(%z) : (memref<f32>) -> ()
  %zu = memref.cast %z : memref<f32> to memref<*xf32>
  call @printMemrefF32(%zu) : (memref<*xf32>) -> ()
  %f64 = memref.get_global @f64 : memref<2x2x2x2xf64>
  %f64u = memref.cast %f64 : memref<2x2x2x2xf64> to memref<*xf64>
  call @printMemrefF64(%f64u) : (memref<*xf64>) -> ()
  %c32 = memref.get_global @c32 : memref<2x1xcomplex<f32>>
  %c32u = memref.cast %c32 : memref<2x1xcomplex<f32>> to memref<*xcomplex<f32>>
  call @printMemrefC32(%c32u) : (memref<*xcomplex<f32>>) -> ()
  %c64 = memref.get_global @c64 : memref<2xcomplex<f64>>
  %c64u = memref.cast %c64 : memref<2xcomplex<f64>> to memref<*xcomplex<f64>>
  call @printMemrefC64(%c64u) : (memref<*xcomplex<f64>>) -> ()
  %f32b = memref.get_global @f32b : memref<3x4xf32>
  %f32bu = memref.cast %f32b : memref<3x4xf32> to memref<*xf32>
  %r = call @verifyMemRefF32(%f32u, %f32bu) : (memref<*xf32>, memref<*xf32>) -> i64
  call @printI64(%r) : (i64) -> ()
  call @printNewline() : () -> ()
  %i8b = memref.get_global @i8b : memref<2x3xi8>
  %i8bu = memref.cast %i8b : memref<2x3xi8> to memref<*xi8>
  %r2 = call @verifyMemRefI8(%i8u, %i8bu) : (memref<*xi8>, memref<*xi8>) -> i64
  call @printI64(%r2) : (i64) -> ()
  call @printNewline() : () -> ()
  %c32b = memref.get_global @c32b : memref<2x1xcomplex<f32>>
  %c32bu = memref.cast %c32b : memref<2x1xcomplex<f32>> to memref<*xcomplex<f32>>
  %r3 = call @verifyMemRefC32(%c32u, %c32bu) : (memref<*xcomplex<f32>>, memref<*xcomplex<f32>>) -> i64
  call @printI64(%r3) : (i64) -> ()
  call @printNewline() : () -> ()
  %bf16b = memref.get_global @bf16b : memref<8xbf16>
  %bf16bu = memref.cast %bf16b : memref<8xbf16> to memref<*xbf16>
  %r4 = call @verifyMemRefBF16(%bf16u, %bf16bu) : (memref<*xbf16>, memref<*xbf16>) -> i64
  call @printI64(%r4) : (i64) -> ()
  call @printNewline() : () -> ()
  %m1 = arith.constant -1 : i64
  call @printU64(%m1) : (i64) -> ()
  call @printComma() : () -> ()
  call @printOpen() : () -> ()
  %pi = arith.constant 3.14159265358979 : f64
  call @printF64(%pi) : (f64) -> ()
  call @printComma() : () -> ()
  %nn = arith.constant 0xFFF8000000000000 : f64
  call @printF64(%nn) : (f64) -> ()
  call @printComma() : () -> ()
  %ni = arith.constant 0xFFF0000000000000 : f64
  call @printF64(%ni) : (f64) -> ()
  call @printComma() : () -> ()
  %n32 = arith.constant 0x7FC00000 : f32
  call @printF32(%n32) : (f32) -> ()
  call @printComma() : () -> ()
  %b32 = arith.constant 123456789.0 : f32
  call @printF32(%b32) : (f32) -> ()
  call @printClose() : () -> ()
  call @printNewline() : () -> ()
  call @printFlops(%pi) : (f64) -> ()
  %h = arith.constant 13652 : i16
  call @printF16(%h) : (i16) -> ()
  call @printNewline() : () -> ()
  %vv = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 5.0, 0.1], [3.0, 4.0, 5.0, 0.1], [3.0, 4.0, 5.0, 0.1]]> : vector<4x4xf32>
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %mv = memref.alloc(%c2, %c1) : memref<?x?xvector<4x4xf32>>
  memref.store %vv, %mv[%c0, %c0] : memref<?x?xvector<4x4xf32>>
  memref.store %vv, %mv[%c1, %c0] : memref<?x?xvector<4x4xf32>>
  call @printMemrefVector4x4xf32(%mv) : (memref<?x?xvector<4x4xf32>>) -> ()
  return
}
