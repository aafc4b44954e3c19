// A dialect that does not exist.
func.func @f() {
  nosuch.op
  return
}
