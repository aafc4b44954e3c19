  // Lanes of a warp.

  // Each shuffle with an offset and a width that the launch says; whether it is valid goes out too.
// each MODE: xor up down idx
  gpu.func @shuffle_$MODE(%x: memref<?xi32>, %offset: i32, %width: i32, %out: memref<?xi32>, %valid: memref<?xi8>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %r, %ok = gpu.shuffle $MODE %v, %offset, %width : i32
    memref.store %r, %out[%at] : memref<?xi32>
    %byte = arith.extui %ok : i1 to i8
    memref.store %byte, %valid[%at] : memref<?xi8>
    gpu.return
  }
// end

// each TYPE: i8 i16 i32 i64 f16 bf16 f32 f64
  gpu.func @neighbours_$TYPE(%x: memref<?x$TYPE>, %out: memref<?x$TYPE>) kernel {
    %one = arith.constant 1 : i32
    %width = arith.constant 16 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?x$TYPE>
    %r, %ok = gpu.shuffle xor %v, %one, %width : $TYPE
    memref.store %r, %out[%at] : memref<?x$TYPE>
    gpu.return
  }
// end

// each SIZE TYPE: 2 f32, 4 i16, 3 f64, 5 i8
  gpu.func @vectors_$SIZEx$TYPE(%x: memref<?x$SIZEx$TYPE>, %out: memref<?x$SIZEx$TYPE>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %at = func.call @at() : () -> index
    %v = vector.load %x[%at, %c0] : memref<?x$SIZEx$TYPE>, vector<$SIZEx$TYPE>
    %r, %ok = gpu.shuffle down %v, %one, %width : vector<$SIZEx$TYPE>
    vector.store %r, %out[%at, %c0] : memref<?x$SIZEx$TYPE>, vector<$SIZEx$TYPE>
    gpu.return
  }
// end

  gpu.func @rotated(%x: memref<?xf32>, %out: memref<?xf32>, %valid: memref<?xi8>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xf32>
    %r, %ok = gpu.rotate %v, 3, 8 : f32
    memref.store %r, %out[%at] : memref<?xf32>
    %byte = arith.extui %ok : i1 to i8
    memref.store %byte, %valid[%at] : memref<?xi8>
    gpu.return
  }

  gpu.func @from_lane(%x: memref<?xi64>, %lane: i32, %out: memref<?xi64>) kernel {
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi64>
    %r = gpu.subgroup_broadcast %v, specific_lane %lane : i64
    memref.store %r, %out[%at] : memref<?xi64>
    gpu.return
  }

  // The first lane of those whose bit is set, and of the others.
  gpu.func @first_of_each_way(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %bit = arith.andi %v, %one : i32
    %odd = arith.cmpi eq, %bit, %one : i32
    %r = scf.if %odd -> i32 {
      %first = gpu.subgroup_broadcast %v, first_active_lane : i32
      scf.yield %first : i32
    } else {
      %first = gpu.subgroup_broadcast %v, first_active_lane : i32
      %minus = arith.subi %zero, %first : i32
      scf.yield %minus : i32
    }
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }

  // The dialect has no ballot: a bit per lane, added up.
  gpu.func @ballot(%x: memref<?xi32>, %out: memref<?xi64>) kernel {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %bit0 = arith.constant 1 : i32
    %at = func.call @at() : () -> index
    %lane = gpu.lane_id
    %shift = arith.index_cast %lane : index to i64
    %bit = arith.shli %one, %shift : i64
    %v = memref.load %x[%at] : memref<?xi32>
    %low = arith.andi %v, %bit0 : i32
    %set = arith.cmpi eq, %low, %bit0 : i32
    %mine = arith.select %set, %bit, %zero : i64
    %r = gpu.subgroup_reduce or %mine uniform : (i64) -> i64
    memref.store %r, %out[%at] : memref<?xi64>
    gpu.return
  }

  gpu.func @all_and_any(%x: memref<?xi32>, %out: memref<?x2xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %all = gpu.subgroup_reduce and %v uniform : (i32) -> i32
    %any = gpu.subgroup_reduce or %v uniform : (i32) -> i32
    memref.store %all, %out[%at, %c0] : memref<?x2xi32>
    memref.store %any, %out[%at, %c1] : memref<?x2xi32>
    gpu.return
  }

  // Lanes go round a loop as often as they like; in each round those that are there exchange, and all meet
  // behind it.
  gpu.func @meet_behind_a_loop(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant 0 : i32
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %lane = gpu.lane_id
    %times = arith.remui %lane, %c3 : index
    %n = scf.for %i = %c0 to %times step %c1 iter_args(%a = %v) -> i32 {
      %first = gpu.subgroup_broadcast %a, first_active_lane : i32
      %b = arith.addi %a, %first : i32
      scf.yield %b : i32
    }
    %sum = gpu.subgroup_reduce add %n uniform : (i32) -> i32
    memref.store %sum, %out[%at] : memref<?xi32>
    gpu.return
  }

  // A lane that has left the inner loop waits for the others before it begins the next round of the outer one.
  gpu.func @rounds_begin_together(%x: memref<?xi32>, %out: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %at = func.call @at() : () -> index
    %v = memref.load %x[%at] : memref<?xi32>
    %lane = gpu.lane_id
    %times = arith.remui %lane, %c3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %v) -> i32 {
      %n = scf.for %j = %c0 to %times step %c1 iter_args(%b = %a) -> i32 {
        %first = gpu.subgroup_broadcast %b, first_active_lane : i32
        %c = arith.addi %b, %first : i32
        scf.yield %c : i32
      }
      scf.yield %n : i32
    }
    memref.store %r, %out[%at] : memref<?xi32>
    gpu.return
  }
