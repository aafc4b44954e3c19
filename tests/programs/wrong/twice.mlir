// One name, two functions.
func.func @f() {
  return
}
func.func @f() {
  return
}
