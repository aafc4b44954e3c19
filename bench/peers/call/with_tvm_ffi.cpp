// with_tvm_ffi.cpp: functions of tvm-ffi that take tensors and do nothing.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

using Tensor = tvm::ffi::TensorView;

void f0() {}
void f1(Tensor) {}
void f3(Tensor, Tensor, Tensor) {}
void f8(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor) {}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(f0, f0);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(f1, f1);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(f3, f3);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(f8, f8);
