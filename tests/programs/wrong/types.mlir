// A value used with two types.
func.func @f(%x: i32, %y: i64) -> i32 {
  %r = arith.addi %x, %y : i32
  return %r : i32
}
