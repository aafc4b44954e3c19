// One kernel per rule of offload-prepare-vectors, for golden/vector_rules.lowered.check.
#rows = affine_map<(m, n, k) -> (m, k)>
#columns = affine_map<(m, n, k) -> (k, n)>
#result = affine_map<(m, n, k) -> (m, n)>
gpu.module @vectors {
  gpu.func @rows(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %i: index) kernel {
    %v = vector.load %x[%i, %i] : memref<8x8xf32>, vector<2x4xf32>
    vector.store %v, %y[%i, %i] : memref<8x8xf32>, vector<2x4xf32>
    gpu.return
  }
  gpu.func @bits(%x: memref<8xi1>, %y: memref<8xi1>, %mask: vector<4xi1>) {
    %c0 = arith.constant 0 : index
    %none = arith.constant dense<false> : vector<4xi1>
    %v = vector.maskedload %x[%c0], %mask, %none : memref<8xi1>, vector<4xi1>, vector<4xi1> into vector<4xi1>
    vector.store %v, %y[%c0] : memref<8xi1>, vector<4xi1>
    gpu.return
  }
  gpu.func @masks(%x: memref<8xf32>, %y: memref<8xf32>, %mask: vector<4xi1>) {
    %c0 = arith.constant 0 : index
    %f0 = arith.constant 0.0 : f32
    %v = vector.mask %mask {
      vector.transfer_read %x[%c0], %f0 {in_bounds = [true]} : memref<8xf32>, vector<4xf32>
    } : vector<4xi1> -> vector<4xf32>
    vector.store %v, %y[%c0] : memref<8xf32>, vector<4xf32>
    gpu.return
  }
  gpu.func @transfers(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %i: index) kernel {
    %f0 = arith.constant 0.0 : f32
    %v = vector.transfer_read %x[%i, %i], %f0 {in_bounds = [true, false]} : memref<8x8xf32>, vector<2x4xf32>
    vector.transfer_write %v, %y[%i, %i] {in_bounds = [true, true]} : vector<2x4xf32>, memref<8x8xf32>
    gpu.return
  }
  gpu.func @contract(%a: vector<2x1xf32>, %b: vector<1x2xf32>, %c: vector<2x2xf32>, %y: memref<2x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %d = vector.contract {indexing_maps = [#rows, #columns, #result], kind = #vector.kind<add>,
                          iterator_types = ["parallel", "parallel", "reduction"]}
      %a, %b, %c : vector<2x1xf32>, vector<1x2xf32> into vector<2x2xf32>
    vector.store %d, %y[%c0, %c0] : memref<2x2xf32>, vector<2x2xf32>
    gpu.return
  }
  gpu.func @outer(%a: vector<2xf32>, %b: vector<2xf32>, %y: memref<2x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %d = vector.outerproduct %a, %b : vector<2xf32>, vector<2xf32>
    vector.store %d, %y[%c0, %c0] : memref<2x2xf32>, vector<2x2xf32>
    gpu.return
  }
  gpu.func @reduce(%a: vector<3x4xf32>, %c: vector<4xf32>, %y: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %d = vector.multi_reduction <mul>, %a, %c [0] : vector<3x4xf32> to vector<4xf32>
    vector.store %d, %y[%c0] : memref<4xf32>, vector<4xf32>
    gpu.return
  }
  gpu.func @scan(%a: vector<3xi32>, %c: vector<i32>, %y: memref<3xi32>) kernel {
    %c0 = arith.constant 0 : index
    %d, %last = vector.scan <add>, %a, %c {inclusive = true, reduction_dim = 0} : vector<3xi32>, vector<i32>
    vector.store %d, %y[%c0] : memref<3xi32>, vector<3xi32>
    gpu.return
  }
  gpu.func @gather(%x: memref<8xf32>, %where: vector<2x2xi32>, %mask: vector<2x2xi1>, %y: memref<2x2xf32>) {
    %c0 = arith.constant 0 : index
    %none = arith.constant dense<0.0> : vector<2x2xf32>
    %v = vector.gather %x[%c0] [%where], %mask, %none
      : memref<8xf32>, vector<2x2xi32>, vector<2x2xi1>, vector<2x2xf32> into vector<2x2xf32>
    vector.store %v, %y[%c0, %c0] : memref<2x2xf32>, vector<2x2xf32>
    gpu.return
  }
  gpu.func @interleave(%a: vector<2x2xi16>, %y: memref<2x4xi16>) kernel {
    %c0 = arith.constant 0 : index
    %v = vector.interleave %a, %a : vector<2x2xi16> -> vector<2x4xi16>
    vector.store %v, %y[%c0, %c0] : memref<2x4xi16>, vector<2x4xi16>
    gpu.return
  }
  gpu.func @bitcast(%a: vector<2x2xi32>, %y: memref<2x4xi16>) kernel {
    %c0 = arith.constant 0 : index
    %v = vector.bitcast %a : vector<2x2xi32> to vector<2x4xi16>
    vector.store %v, %y[%c0, %c0] : memref<2x4xi16>, vector<2x4xi16>
    gpu.return
  }
  gpu.func @transpose(%a: vector<2x3xf32>, %y: memref<3x2xf32>) kernel {
    %c0 = arith.constant 0 : index
    %v = vector.transpose %a, [1, 0] : vector<2x3xf32> to vector<3x2xf32>
    vector.store %v, %y[%c0, %c0] : memref<3x2xf32>, vector<3x2xf32>
    gpu.return
  }
  gpu.func @unknown_rows(%a: vector<2x4xf32>, %i: index, %j: index, %y: memref<2x4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %e = vector.extract %a[%i] : vector<4xf32> from vector<2x4xf32>
    %v = vector.insert %e, %a[%j] : vector<4xf32> into vector<2x4xf32>
    vector.store %v, %y[%c0, %c0] : memref<2x4xf32>, vector<2x4xf32>
    gpu.return
  }
  gpu.func @masks_in_order(%m: vector<2x4xi1>, %x: memref<4x5x3xf32>, %y: memref<5x3x4xf32>) {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %v = vector.transfer_read %x[%c0, %c0, %c0], %pad, %m {in_bounds = [true, true], permutation_map =
      affine_map<(i, j, k) -> (j, i)>} : memref<4x5x3xf32>, vector<4x2xf32>
    vector.transfer_write %v, %y[%c0, %c0, %c0], %m {in_bounds = [true, true], permutation_map =
      affine_map<(i, j, k) -> (k, i)>} : vector<4x2xf32>, memref<5x3x4xf32>
    gpu.return
  }
  gpu.func @strided_loads(%x: memref<?xf32, strided<[3]>>, %y: memref<4xf32>, %m: vector<2xi1>, %p: vector<2xf32>,
      %i: vector<2xi32>) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %v = vector.maskedload %x[%c2], %m, %p : memref<?xf32, strided<[3]>>, vector<2xi1>, vector<2xf32> into vector<2xf32>
    %w = vector.gather %x[%c2] [%i], %m, %v
      : memref<?xf32, strided<[3]>>, vector<2xi32>, vector<2xi1>, vector<2xf32> into vector<2xf32>
    %u = vector.expandload %x[%c2], %m, %w : memref<?xf32, strided<[3]>>, vector<2xi1>, vector<2xf32> into vector<2xf32>
    vector.store %u, %y[%c0] : memref<4xf32>, vector<2xf32>
    gpu.return
  }
  gpu.func @strided_stores(%x: memref<?xf32, strided<[3]>>, %m: vector<2xi1>, %p: vector<2xf32>, %i: vector<2xi32>) {
    %c2 = arith.constant 2 : index
    vector.maskedstore %x[%c2], %m, %p : memref<?xf32, strided<[3]>>, vector<2xi1>, vector<2xf32>
    vector.scatter %x[%c2] [%i], %m, %p : memref<?xf32, strided<[3]>>, vector<2xi32>, vector<2xi1>, vector<2xf32>
    vector.compressstore %x[%c2], %m, %p : memref<?xf32, strided<[3]>>, vector<2xi1>, vector<2xf32>
    gpu.return
  }
  gpu.func @masked_rows(%x: memref<?x?xf32>, %y: memref<?xf32>, %m: vector<2x4xi1>, %p: vector<2x4xf32>,
      %i: vector<2x4xi32>) {
    %c1 = arith.constant 1 : index
    %v = vector.maskedload %x[%c1, %c1], %m, %p : memref<?x?xf32>, vector<2x4xi1>, vector<2x4xf32> into vector<2x4xf32>
    vector.maskedstore %x[%c1, %c1], %m, %v : memref<?x?xf32>, vector<2x4xi1>, vector<2x4xf32>
    vector.scatter %y[%c1] [%i], %m, %v : memref<?xf32>, vector<2x4xi32>, vector<2x4xi1>, vector<2x4xf32>
    gpu.return
  }
  gpu.func @other_contractions(%a: vector<4xf16>, %b: vector<4xi32>, %s: f32, %i: i32, %y: memref<1xf32>,
      %z: memref<1xi32>) {
    %c0 = arith.constant 0 : index
    %sum = vector.contract {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>],
      iterator_types = ["reduction"]} %a, %a, %s : vector<4xf16>, vector<4xf16> into f32
    memref.store %sum, %y[%c0] : memref<1xf32>
    %most = vector.contract {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>],
      iterator_types = ["reduction"], kind = #vector.kind<maxsi>} %b, %b, %i : vector<4xi32>, vector<4xi32> into i32
    memref.store %most, %z[%c0] : memref<1xi32>
    gpu.return
  }
}
