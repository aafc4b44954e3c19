// A module in the program's: nothing of it would be in the library.
module {
  module @inner {
    func.func @f() { return }
  }
  func.func @g() { return }
}
