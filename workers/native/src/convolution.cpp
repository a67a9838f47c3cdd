#include "convolution.h"

namespace esper {

namespace {

INLINE float signed_weight(const Kernel& k, const float* sign, int o, int c, int ky, int kx) {
    const float w = k.weights[k.at(o, c, ky, kx)];
    return sign == nullptr ? w : w * sign[o];
}

INLINE Vec maybe_rectified(Vec x, bool relu) { return relu ? rectified(x) : x; }

}  // namespace

void pack_kernel(const Kernel& k, const float* sign, float* packed) {
    const int taps = k.taps * k.taps;
    for (int o = 0; o < k.out; o += TILE)
        for (int c = 0; c < k.in; c++)
            for (int q = 0; q < taps; q++)
                for (int t = 0; t < TILE; t++)
                    *packed++ = o + t < k.out ? signed_weight(k, sign, o + t, c, q / k.taps, q % k.taps) : 0.0f;
}

void pack_turned(const Kernel& k, const float* sign, float* packed) {
    const int last = k.taps * k.taps - 1;
    for (int c = 0; c < k.in; c += TILE)
        for (int o = 0; o < k.out; o++)
            for (int q = last; q >= 0; q--)
                for (int t = 0; t < TILE; t++)
                    *packed++ = c + t < k.in ? signed_weight(k, sign, o, c + t, q / k.taps, q % k.taps) : 0.0f;
}

void convolve_packs(const Packs& packs, Plane plane, const float* packed, int inputs, int outputs, int taps, bool relu) {
    if (plane.single()) {
        convolve_single(packs.in, packs.in_apart, packs.count, packed, inputs, outputs, nullptr,
            [&](int pack, int o, Vec a) { packs.out[pack * packs.out_apart + o] = maybe_rectified(a, relu); });
        return;
    }
    for (int pack = 0; pack < packs.count; pack++) {
        Vec* out = packs.out + pack * packs.out_apart;
        auto done = [&](int o, int y, int x, Vec a, Vec b, Vec c, Vec d) {
            if (relu) a = rectified(a), b = rectified(b), c = rectified(c), d = rectified(d);
            store(out + o * plane.size(), plane, y, x, a, b, c, d);
        };
        convolve(packs.in + pack * packs.in_apart, plane, packed, inputs, outputs, taps, nullptr, done);
    }
}

// --- gradients of kernels -------------------------------------------------------------------------------------------

namespace {

constexpr std::ptrdiff_t NEAR = 16 << 10;  // bytes of a gradient that the nearest cache holds beside the rest

constexpr int POINT_OUT = 4, POINT_IN = LANES == 16 ? 4 : 2;

// OUT outputs, IN inputs and K taps in a row, from tap (ky, kx) on, in registers.
template <int OUT, int IN, int K>
INLINE void graded(const Kernel& k, const Slab& s, int ky, int kx, int o, int c, Vec* sums, int share_at) {
    const int width = s.x_plane.width;
    std::ptrdiff_t at[OUT][IN], g_at[OUT], x_at[IN];
    Vec a[OUT][IN][K];
#pragma GCC unroll 8
    for (int t = 0; t < OUT; t++) {
        const int output = o + t < k.out ? o + t : k.out - 1;
        g_at[t] = output * s.g_plane.size();
#pragma GCC unroll 4
        for (int u = 0; u < IN; u++) {
            const int input = c + u < k.in ? c + u : k.in - 1;
            x_at[u] = input * s.x_plane.size();
            at[t][u] = k.at(output, input, ky, kx);
#pragma GCC unroll 3
            for (int j = 0; j < K; j++) a[t][u][j] = sums[at[t][u] + j];
        }
    }
    for (int p = 0; p < s.packs; p++) {
        if (share(s.first_pack + p) != share_at) continue;
        const Vec* x0 = s.x + p * s.x_apart + s.x_plane.at(s.row + ky - k.taps / 2, kx - k.taps / 2);
        const Vec* g0 = s.g + p * s.g_apart + s.g_plane.at(0, 0);
        for (int y = 0; y < s.rows; y++, x0 += s.x_plane.row(), g0 += s.g_plane.row())
            for (int x = 0; x < width; x++) {
                Vec in[IN][K];
#pragma GCC unroll 4
                for (int u = 0; u < IN; u++)
#pragma GCC unroll 3
                    for (int j = 0; j < K; j++) in[u][j] = x0[x_at[u] + x + j];
#pragma GCC unroll 8
                for (int t = 0; t < OUT; t++) {
                    const Vec g = g0[g_at[t] + x];
#pragma GCC unroll 4
                    for (int u = 0; u < IN; u++)
#pragma GCC unroll 3
                        for (int j = 0; j < K; j++) a[t][u][j] = fma(g, in[u][j], a[t][u][j]);
                }
            }
    }
#pragma GCC unroll 8
    for (int t = 0; t < OUT; t++)
#pragma GCC unroll 4
        for (int u = 0; u < IN; u++)
            if (o + t < k.out && c + u < k.in)
#pragma GCC unroll 3
                for (int j = 0; j < K; j++) sums[at[t][u] + j] = a[t][u][j];
}

void add_of_share(const Kernel& k, const Slab& s, Vec* sums, int share_at) {
    if (k.taps == 3) {
        for (int o = 0; o < k.out; o += GRADED)
            for (int c = 0; c < k.in; c++)
                for (int ky = 0; ky < 3; ky++) graded<GRADED, 1, 3>(k, s, ky, 0, o, c, sums, share_at);
        return;
    }
    for (int o = 0; o < k.out; o += POINT_OUT)
        for (int c = 0; c < k.in; c += POINT_IN)
            for (int q = 0; q < k.taps * k.taps; q++)
                graded<POINT_OUT, POINT_IN, 1>(k, s, q / k.taps, q % k.taps, o, c, sums, share_at);
}

}  // namespace

// In parts whose gradients stay near while all inputs and taps go by; every sum has its terms in the same order.
void add_kernel_gradient(const Kernel& k, const Slab& s, Vec* sums, std::size_t parameters) {
    const std::ptrdiff_t row = std::ptrdiff_t(sizeof(Vec)) * GRADED * s.g_plane.width;
    if (row * s.rows * s.packs <= NEAR) {
        for (int of = 0; of < SHARES; of++) add_of_share(k, s, sums + of * parameters, of);
        return;
    }
    const int rows = row >= NEAR ? 1 : int(NEAR / row);
    for (int p = 0; p < s.packs; p++)
        for (int y = 0; y < s.rows; y += rows) {
            Slab part = s;
            part.x += p * s.x_apart;
            part.g += p * s.g_apart + y * s.g_plane.row();
            part.row += y;
            part.rows = s.rows - y < rows ? s.rows - y : rows;
            part.first_pack += p;
            part.packs = 1;
            const int of = share(part.first_pack);
            add_of_share(k, part, sums + of * parameters, of);
        }
}

// --- one channel at a time ------------------------------------------------------------------------------------------

namespace {

template <int K>
INLINE void depthwise(const Packs& packs, Plane plane, const Kernel& k, bool relu, bool turned) {
    const int taps = K > 0 ? K : k.taps, last = taps * taps - 1;
    for (int pack = 0; pack < packs.count; pack++)
        for (int c = 0; c < k.out; c++) {
            Vec w[MOST * MOST];
            for (int q = 0; q <= last; q++) {
                const int from = turned ? last - q : q;
                w[q] = splat(k.weights[k.at(c, 0, from / taps, from % taps)]);
            }
            const Vec* in = packs.in + pack * packs.in_apart + c * plane.size();
            Vec* out = packs.out + pack * packs.out_apart + c * plane.size();
            for (int y = 0; y < plane.height; y++)
                for (int x = 0; x < plane.width; x++) {
                    const Vec* at = in + plane.at(y - taps / 2, x - taps / 2);
                    Vec a = {};
#pragma GCC unroll 9
                    for (int q = 0; q <= last; q++) a = fma(at[q / taps * plane.row() + q % taps], w[q], a);
                    out[plane.at(y, x)] = maybe_rectified(a, relu);
                }
        }
}

}  // namespace

void convolve_depthwise(const Packs& packs, Plane plane, const Kernel& k, bool relu, bool turned) {
    if (k.taps == 3)
        depthwise<3>(packs, plane, k, relu, turned);
    else if (k.taps == 1)
        depthwise<1>(packs, plane, k, relu, turned);
    else
        depthwise<0>(packs, plane, k, relu, turned);
}

void add_depthwise_gradient(const Kernel& k, const Slab& s, Vec* sums, std::size_t parameters) {
    for (int p = 0; p < s.packs; p++)
        for (int c = 0; c < k.out; c++)
            for (int ky = 0; ky < k.taps; ky++) {
                Vec a[MOST];
                Vec* to = sums + share(s.first_pack + p) * parameters + k.at(c, 0, ky, 0);
                for (int kx = 0; kx < k.taps; kx++) a[kx] = to[kx];
                for (int y = 0; y < s.rows; y++) {
                    const int row = s.row + y + ky - k.taps / 2;
                    const Vec* x0 = s.x + p * s.x_apart + c * s.x_plane.size() + s.x_plane.at(row, -(k.taps / 2));
                    const Vec* g0 = s.g + p * s.g_apart + c * s.g_plane.size() + s.g_plane.at(y, 0);
                    for (int x = 0; x < s.x_plane.width; x++)
                        for (int kx = 0; kx < k.taps; kx++) a[kx] = fma(g0[x], x0[x + kx], a[kx]);
                }
                for (int kx = 0; kx < k.taps; kx++) to[kx] = a[kx];
            }
}

}  // namespace esper
