# SPDX-License-Identifier: Apache-2.0
# Makes rows of the table in gpu_traits.c of data/gpu-kinds.txt:
#
#     kind RTX-3090 ... 82 ...      DERIVED("RTX-3090", 82, 71e12, 936e9, 8.6, 2100, 4)
#     speed 71 936 1.43             (name, SMs, FLOPS in 16 bit, bytes a second, CUDA capability,
#     nvml 8.6 7 2100 ...           MHz of the SMs, PCIe generation)
#
# A kind that is there with several sizes of memory, A100-40GB and A100-80GB, is one row: "A100".
function flush() {
    if (name != "" && !(name in seen))
        printf "DERIVED(\"%s\", %d, %s, %s, %s, %d, %d)\n", name, sms, tflops "e12", gbs "e9", capability, mhz, pcie
    seen[name] = 1
}
$1 == "kind" { flush(); name = $2; sub(/-[0-9]+GB$/, "", name); sms = $5; tflops = gbs = capability = mhz = pcie = 0 }
$1 == "speed" { tflops = $2; gbs = $3 }
$1 == "nvml" { capability = $2; mhz = $4; pcie = $6 }
END { flush() }
