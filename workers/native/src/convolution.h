// Same-padded convolutions without bias, their kernels' gradients, and kernels packed for them.
//
// A tile is 2x2 pixels of a few outputs, kept in registers over all inputs and taps; for single pixels, four packs
// of a few outputs. Each number is accumulated separately over inputs, then rows, then columns of taps, so tiles may
// differ between vector widths without changing bits.
#pragma once

#include "layout.h"

namespace esper {

constexpr int TILE = LANES == 16 ? 4 : 2;    // outputs in registers, with 4 pixels each
constexpr int GRADED = LANES == 16 ? 8 : 4;  // outputs in registers of a kernel's gradient, with a row of taps each
constexpr int MOST = 15;                     // taps of a row

// A kernel [out][in][wide][wide]; only the middle `taps` by `taps` are used: all, or the centre.
struct Kernel {
    const float* weights = nullptr;
    int out = 0, in = 0, wide = 1, taps = 1;

    std::ptrdiff_t at(int o, int c, int ky, int kx) const {
        const int skipped = (wide - taps) / 2;
        return ((std::ptrdiff_t(o) * in + c) * wide + ky + skipped) * wide + kx + skipped;
    }
    std::size_t packed_size() const { return std::size_t(out + TILE) * (in + TILE) * taps * taps; }
};

// Packed as [out / TILE][in][taps][taps][TILE]; outputs beyond the last are zero. Multiplied by `sign` [out], if given.
void pack_kernel(const Kernel& kernel, const float* sign, float* packed);
// The same for the kernel of the input's gradient: rotated by 180 degrees, with outputs and inputs exchanged.
void pack_turned(const Kernel& kernel, const float* sign, float* packed);

// --- tiles ----------------------------------------------------------------------------------------------------------

// K taps per row; if K is 0, `taps`. `at` is the first tap of the tile's first pixel.
template <int K> INLINE void tile(const Vec* at, const float* w, int in, Plane plane, int taps, Vec (&a)[4][TILE]) {
    const std::ptrdiff_t row = plane.row(), next = plane.size();
    if constexpr (K > 0) {
        for (int c = 0; c < in; c++, at += next) {
#pragma GCC unroll 7
            for (int ky = 0; ky < K; ky++) {
                Vec top[K + 1], below[K + 1];
#pragma GCC unroll 8
                for (int j = 0; j <= K; j++) {
                    top[j] = at[ky * row + j];
                    below[j] = at[(ky + 1) * row + j];
                }
#pragma GCC unroll 7
                for (int kx = 0; kx < K; kx++) {
#pragma GCC unroll 4
                    for (int o = 0; o < TILE; o++) {
                        const Vec b = splat(w[o]);
                        a[0][o] = fma(top[kx], b, a[0][o]);
                        a[1][o] = fma(top[kx + 1], b, a[1][o]);
                        a[2][o] = fma(below[kx], b, a[2][o]);
                        a[3][o] = fma(below[kx + 1], b, a[3][o]);
                    }
                    w += TILE;
                }
            }
        }
    } else {
        for (int c = 0; c < in; c++, at += next)
            for (int ky = 0; ky < taps; ky++)
                for (int kx = 0; kx < taps; kx++, w += TILE)
                    for (int o = 0; o < TILE; o++) {
                        const Vec b = splat(w[o]);
                        for (int p = 0; p < 4; p++)
                            a[p][o] = fma(at[(ky + p / 2) * row + kx + p % 2], b, a[p][o]);
                    }
    }
}

// Calls `done(output, y, x, a)` for every 2x2 pixels of every output of one pack; a[p] at row y + p / 2, column
// x + p % 2, which may lie outside at an odd edge. `start` [out, padded to TILE]: initial sums; null: 0.
template <int K, class Done>
INLINE void convolve_tiles(
    const Vec* in, Plane plane, const float* packed, int inputs, int outputs, int taps, const float* start, Done&& done
) {
    const int k = K > 0 ? K : taps, height = plane.height, width = plane.width;
    const Vec* first = in + plane.at(-(k / 2), -(k / 2));
    for (int y = 0; y < height; y += 2)
        for (int o = 0; o < outputs; o += TILE) {
            for (int x = 0; x < width; x += 2) {
                const Vec* at = first + y * plane.row() + x;
                Vec a[4][TILE];
#pragma GCC unroll 4
                for (int t = 0; t < TILE; t++) {
                    const Vec begin = start == nullptr ? Vec{} : splat(start[o + t]);
#pragma GCC unroll 4
                    for (int p = 0; p < 4; p++) a[p][t] = begin;
                }
                tile<K>(at, packed + std::size_t(o) * inputs * k * k, inputs, plane, taps, a);
#pragma GCC unroll 4
                for (int t = 0; t < TILE; t++)
                    if (o + t < outputs) done(o + t, y, x, a[0][t], a[1][t], a[2][t], a[3][t]);
            }
        }
}

template <class Done>
INLINE void convolve(
    const Vec* in, Plane plane, const float* packed, int inputs, int outputs, int taps, const float* start, Done&& done
) {
    if (taps == 1)
        convolve_tiles<1>(in, plane, packed, inputs, outputs, taps, start, done);
    else if (taps == 3)
        convolve_tiles<3>(in, plane, packed, inputs, outputs, taps, start, done);
    else
        convolve_tiles<0>(in, plane, packed, inputs, outputs, taps, start, done);
}

// For single pixels: calls `done(pack, output, value)`. `apart`: stride between packs of `in`.
template <class Done>
INLINE void convolve_single(
    const Vec* in, std::ptrdiff_t apart, int packs, const float* packed, int inputs, int outputs, const float* start,
    Done&& done
) {
    for (int pack = 0; pack < packs; pack += 4) {
        const int here = packs - pack < 4 ? packs - pack : 4;
        const Vec* x[4];
        for (int p = 0; p < 4; p++) x[p] = in + (pack + (p < here ? p : 0)) * apart;
        for (int o = 0; o < outputs; o += TILE) {
            const float* w = packed + std::size_t(o) * inputs;
            Vec a[4][TILE];
            for (int t = 0; t < TILE; t++)
                for (int p = 0; p < 4; p++) a[p][t] = start == nullptr ? Vec{} : splat(start[o + t]);
            for (int c = 0; c < inputs; c++, w += TILE) {
#pragma GCC unroll 4
                for (int t = 0; t < TILE; t++) {
                    const Vec b = splat(w[t]);
#pragma GCC unroll 4
                    for (int p = 0; p < 4; p++) a[p][t] = fma(x[p][c], b, a[p][t]);
                }
            }
            for (int p = 0; p < here; p++)
                for (int t = 0; t < TILE && o + t < outputs; t++) done(pack + p, o + t, a[p][t]);
        }
    }
}

// Convolves `packs` packs with stride `apart`; writes to the same plane of `out`.
struct Packs {
    const Vec* in;
    std::ptrdiff_t in_apart;
    Vec* out;
    std::ptrdiff_t out_apart;
    int count;
};
void convolve_packs(const Packs& packs, Plane plane, const float* packed, int inputs, int outputs, int taps, bool relu);

// --- gradients of kernels -------------------------------------------------------------------------------------------

// Adds the kernel's gradient (products of each output's gradient with its inputs) to `sums`, [shares][parameters],
// at offset kernel.at. `g` has `rows` rows of `g_plane`, from `row` on; `x` is whole planes.
struct Slab {
    const Vec* x;
    std::ptrdiff_t x_apart;
    Plane x_plane;
    const Vec* g;
    std::ptrdiff_t g_apart;
    Plane g_plane;
    int row, rows, first_pack, packs;
};
void add_kernel_gradient(const Kernel& kernel, const Slab& slab, Vec* sums, std::size_t parameters);

// --- one channel at a time: kernels [channels][1][wide][wide] -------------------------------------------------------

// `turned`: computes the input's gradient from the output's.
void convolve_depthwise(const Packs& packs, Plane plane, const Kernel& kernel, bool relu, bool turned);
void add_depthwise_gradient(const Kernel& kernel, const Slab& slab, Vec* sums, std::size_t parameters);

}  // namespace esper
