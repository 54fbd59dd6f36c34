// dim3 and the built-in vector types of CUDA, with their alignments.

#pragma once

struct dim3 {
    unsigned x = 1;
    unsigned y = 1;
    unsigned z = 1;

    constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
        : x(width)
        , y(height)
        , z(depth)
    {
    }
};

struct uint3 {
    unsigned x, y, z;
};

#define MR_SIMT_VECTORS(name, T)                                                                   \
    struct alignas(2 * sizeof(T)) name##2                                                          \
    {                                                                                              \
        T x, y;                                                                                    \
    };                                                                                             \
    struct alignas(4 * sizeof(T)) name##4                                                          \
    {                                                                                              \
        T x, y, z, w;                                                                              \
    };                                                                                             \
    inline name##2 make_##name##2(T x, T y)                                                        \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    inline name##4 make_##name##4(T x, T y, T z, T w)                                              \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }
MR_SIMT_VECTORS(int, int)
MR_SIMT_VECTORS(uint, unsigned)
MR_SIMT_VECTORS(float, float)
#undef MR_SIMT_VECTORS
