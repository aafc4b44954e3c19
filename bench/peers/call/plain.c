/* plain.c: C functions that take memrefs by pointer, or the addresses and lengths of arrays, and do nothing.
 */
#include <stdint.h>

#define V const void *
void memrefs0(void) {}
void memrefs1(V a) { (void)a; }
void memrefs3(V a, V b, V c) { (void)a, (void)b, (void)c; }
void memrefs8(V a, V b, V c, V d, V e, V f, V g, V h) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
}
