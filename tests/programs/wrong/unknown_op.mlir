// An operation that its dialect does not have; the line begins with a tab.
func.func @f() {
	"gpu.nonsense"() : () -> ()
  return
}
