// targets: nvvm:sm_90
// Compiled code in a program: objects of a gpu.binary, of which one is chosen, and a module that carries its own.
module attributes {gpu.container_module} {
  gpu.binary @both [
    #gpu.object<#nvvm.target<chip = "sm_80">, properties = {O = 1 : i32},
                assembly = ".version 8.3\0A.target sm_80\0A.address_size 64\0A// as it came\0A.visible .entry k() { ret; }\0A">,
    #gpu.object<#nvvm.target<chip = "sm_90">,
                assembly = ".version 8.3\0A.target sm_90\0A.address_size 64\0A// this, too\0A.visible .entry k() { ret; }\0A">
  ]
  gpu.binary @chosen <#gpu.select_object<#nvvm.target<chip = "sm_90">>> [
    #gpu.object<#nvvm.target<chip = "sm_80">, assembly = ".version 8.3\0A.target sm_80\0A.visible .entry k() { ret; } // not this\0A">,
    #gpu.object<#nvvm.target<chip = "sm_90">, assembly = ".version 8.3\0A.target sm_90\0A.visible .entry k() { ret; } // this\0A">
  ]
  gpu.module @carried attributes {nvvm.cubin = ".version 8.3\0A.target sm_90\0A.address_size 64\0A.visible .entry k() { ret; } // carried\0A"} {
    llvm.func @k() attributes {gpu.kernel}
  }
  func.func @f() {
    %c1 = arith.constant 1 : index
    gpu.launch_func @both::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @chosen::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    gpu.launch_func @carried::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return
  }
}
