// The instructions C++ has no words for: matrix fragments, asynchronous copies, fast exponentials.
//
// Nothing else in gpu/ holds assembly. tests/gpu/simt has a header of the same name with the same
// functions in plain C++, so that every kernel also runs on the host.
//
// Threads  "warp": all 32 lanes call together, with the same shared-memory tile.
// Units    Shared-memory addresses are generic pointers.
// Source   PTX ISA 8.x: ldmatrix, mma.m16n8k16, cp.async, ex2.approx, cvt.rn.bf16x2.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace mr::gpu {

// Does the card that is compiled for multiply BF16 (mmaBf16)? False on the host, too.
#if __CUDA_ARCH__ >= 800
inline constexpr bool kMultipliesBf16 = true;
#else
inline constexpr bool kMultipliesBf16 = false;
#endif

__device__ inline unsigned sharedAddress(const void* shared)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// 16 bytes from global to shared memory, both aligned to 16; 16 zero bytes if not `valid` (then
// `global` is not read, but must be an address of the tensor). Done after cpAsyncWait and a
// barrier.
__device__ inline void cpAsync16(void* shared, const void* global, bool valid)
{
#if __CUDA_ARCH__ >= 800
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(sharedAddress(shared)),
                 "l"(global), "r"(bytes)
                 : "memory");
#else
    *static_cast<uint4*>(shared) =
        valid ? *static_cast<const uint4*>(global) : make_uint4(0, 0, 0, 0);
#endif
}

// Closes a group of this thread's copies.
__device__ inline void cpAsyncCommit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

// Waits until at most `kPending` of this thread's groups are unfinished.
template <int kPending>
__device__ inline void cpAsyncWait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
#endif
}

// warp: four 8x8 matrices of 16-bit elements. Lane l gives the address of row l % 8 of matrix
// l / 8 (16 bytes, aligned to 16). Lane l gets of matrix i in r[i] elements 2 (l % 4) and + 1 of
// row l / 4; with Trans of column l / 4, rows 2 (l % 4) and + 1.
__device__ inline void ldmatrix4(std::uint32_t (&r)[4], const void* shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(sharedAddress(shared))
                 : "memory");
}

__device__ inline void ldmatrix4Trans(std::uint32_t (&r)[4], const void* shared)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(sharedAddress(shared))
                 : "memory");
}

// warp: d += a b, a (16, 16) row-major, b (16, 8) column-major, both BF16, d (16, 8) F32.
// With g = lane / 4, t = lane % 4:
//   a[0]: (g, 2t..), a[1]: (g + 8, 2t..), a[2]: (g, 2t + 8..), a[3]: (g + 8, 2t + 8..)
//   b[0]: rows 2t.. of column g, b[1]: rows 2t + 8..
//   d[0], d[1]: (g, 2t), (g, 2t + 1); d[2], d[3]: row g + 8
// Needs sm_80. On sm_75 kernels that call it are empty, and nothing launches them there (DeviceInfo
// refuses BF16).
__device__ inline void mmaBf16(
    float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2])
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void)d, (void)a, (void)b;
#endif
}

// Two BF16, nearest even: `low` in bits 0 to 15.
__device__ inline std::uint32_t packBf16(float low, float high)
{
#if __CUDA_ARCH__ >= 800
    std::uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
#else
    const auto round = [](float x) {
        const std::uint32_t bits = __float_as_uint(x);
        if ((bits & 0x7fffffffU) > 0x7f800000U) // a NaN: the carry could make a zero of it
            return (bits >> 16) | 0x40U;
        return (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    };
    return round(low) | (round(high) << 16);
#endif
}

// 16 and 8 bytes to global memory in one instruction; `to` is aligned to as many. nvcc splits such
// stores of structs into 2-byte ones where it cannot follow the address.
__device__ inline void storeGlobal(void* to, uint4 bits)
{
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};\n" ::"l"(__cvta_generic_to_global(to)),
                 "r"(bits.x), "r"(bits.y), "r"(bits.z), "r"(bits.w)
                 : "memory");
}

__device__ inline void storeGlobal(void* to, uint2 bits)
{
    asm volatile("st.global.v2.u32 [%0], {%1,%2};\n" ::"l"(__cvta_generic_to_global(to)),
                 "r"(bits.x), "r"(bits.y)
                 : "memory");
}

// 2^x with an error of at most 2 units in the last place; 0 for -infinity and below 2^-126.
__device__ inline float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

// x, opaque to the compiler: computations that use it are not moved ahead of this point.
__device__ inline unsigned unpredictable(unsigned x)
{
    asm volatile("" : "+r"(x));
    return x;
}

} // namespace mr::gpu
