//===- error_function.cpp - erf -------------------------------------------===//

#include "codegen/math/functions.h"

namespace offload {

Number buildErf(Number x) {
  Number size = x.abs(), z = x * x;
  Number near = fma(x,
                    polynomial(z,
                               {0x1.06eba8p-3, -0x1.812744p-2, 0x1.ce2ea0p-4, -0x1.b821e6p-6, 0x1.55dcc6p-8,
                                -0x1.b99eb6p-11, 0x1.c77348p-14, -0x1.1fd45cp-17},
                               {}),
                    x);
  // The logarithm of 1 - erf(x) is smooth. From 4 on, erf(x) is 1.
  Number t = select(size > 4.0, x.constant(4), size) - 2.5;
  Number logarithm =
      polynomial(t,
                 {-0x1.f3a2dcp+2, -0x1.569250p+2, -0x1.e34610p-1, -0x1.63f1b6p-7, 0x1.1ab720p-9,
                  -0x1.bd6c36p-12, 0x1.5e873ap-14, -0x1.46f778p-19, 0x1.0017c6p-17, 0x1.39d4d0p-20},
                 {});
  Number far = (1.0 - buildExp(logarithm)).withSignOf(x);
  return select(size < 1.0, near, far);
}

} // namespace offload
