// Linear layers.
#include "policy_layers.h"

namespace esper::policy {

namespace {

constexpr int ACROSS = 2;                  // vectors of a tile
constexpr int DOWN = LANES == 16 ? 8 : 6;  // rows of a tile: as many accumulators as there are registers for
constexpr Size PANEL = ACROSS * LANES;
constexpr Size BLOCK = 64;  // rows whose gradients are summed together, so that errors of rounding stay small

// to [down][across] = start + left * right, or with `add` that is added to it.
struct Product {
    Size down, inner, across;
    const float* left;  // element (m, k) is left[m * left_row + k * left_column]
    Size left_row, left_column;
    const float* right;  // element (k, n) is right[n / PANEL * panel + k * right_row + n % PANEL]
    Size panel, right_row;
    const float* start;  // [across, whole panels], or null: zeros
    float* to;
    Size to_row;
    bool add;
};

template <int R, int V> INLINE void tile(const Product& of) {
    Vec sum[R][V];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) sum[r][v] = of.start == nullptr ? Vec{} : load(of.start + v * LANES);
    const float *x = of.left, *w = of.right;
    for (Size k = 0; k < of.inner; k++, x += of.left_column, w += of.right_row) {
        Vec factor[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) factor[v] = load(w + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            const Vec each = splat(x[r * of.left_row]);
#pragma GCC unroll 2
            for (int v = 0; v < V; v++) sum[r][v] = fma(each, factor[v], sum[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) {
            float* to = of.to + r * of.to_row + v * LANES;
            const Size left = of.across - v * LANES;
            if (left >= LANES) store(to, of.add ? load(to) + sum[r][v] : sum[r][v]);
            for (Size i = 0; i < left && left < LANES; i++) to[i] = of.add ? to[i] + sum[r][v][i] : sum[r][v][i];
        }
}

template <int V, int R = DOWN> void tile_of(const Product& of, Size rows) {
    if (rows == R) return tile<R, V>(of);
    if constexpr (R > 1) tile_of<V, R - 1>(of, rows);
}

void multiply(Product of) {
    const float *left = of.left, *right = of.right;
    float* to = of.to;
    for (; of.across > 0; of.across -= PANEL, right += of.panel, to += PANEL) {
        of.left = left;
        of.right = right;
        of.to = to;
        for (Size m = 0, rows; m < of.down; m += rows) {
            const Size rest = of.down - m;  // tiles as even as possible, with enough accumulators to hide latency
            rows = rest <= DOWN ? rest : rest < 2 * DOWN ? (rest + 1) / 2 : DOWN;
            of.across > LANES ? tile_of<2>(of, rows) : tile_of<1>(of, rows);
            of.left += rows * of.left_row;
            of.to += rows * of.to_row;
        }
        if (of.start != nullptr) of.start += PANEL;
    }
}

}  // namespace

void Linear::pack(const float* values) {
    const Size wide = (outputs() + PANEL - 1) / PANEL * PANEL, deep = (in + PANEL - 1) / PANEL * PANEL;
    along.fit(std::size_t(wide * in / LANES));
    back.fit(std::size_t(deep * outputs() / LANES));
    starts.fit(std::size_t(wide / LANES));
    float *columns = (float*)along.data(), *rows = (float*)back.data();
    for (Size o = 0; o < blocks * out; o++) {
        const float* w = values + weight + o * in;
        const Size n = o / out * block() + o % out;
        float* column = columns + n / PANEL * PANEL * in + n % PANEL;
        for (Size i = 0; i < in; i++) column[i * PANEL] = w[i];
        for (Size i = 0; i < in; i++) rows[i / PANEL * PANEL * outputs() + n * PANEL + i % PANEL] = w[i];
        start()[n] = bias < 0 ? 0.0f : values[bias + o];
    }
}

void Linear::forward(Size rows, Size first, const Rows& x, Rows& y, bool add) const {
    multiply({rows, in, outputs(), x.row(first), x.stride(), 1, (const float*)along.data(), in * PANEL, PANEL,
        (const float*)starts.data(), y.row(first), y.stride(), add});
}

void Linear::backward(Size rows, Size first, const Rows& g, Size into_first, Rows& into, bool add) const {
    multiply({rows, outputs(), in, g.row(first), g.stride(), 1, (const float*)back.data(), outputs() * PANEL,
        PANEL, nullptr, into.row(into_first), into.stride(), add});
}

void Linear::add_gradient(Size rows, const Rows& x, const Rows& g, float* gradient) const {
    for (Size b = 0; b < blocks; b++)
        for (Size from = 0; from < rows; from += BLOCK) {
            const Size count = rows - from < BLOCK ? rows - from : BLOCK;
            const float* of = g.row(from) + b * block();
            multiply({out, count, in, of, 1, g.stride(), x.row(from), PANEL, x.stride(), nullptr,
                gradient + weight + b * out * in, in, true});
            for (Size i = 0; i < out; i += LANES) {
                Vec sum = {};
                for (Size r = 0; r < count; r++) sum += load(of + r * g.stride() + i);
                for (Size k = 0; k < LANES && i + k < out; k++) gradient[bias + b * out + i + k] += sum[k];
            }
        }
}

}  // namespace esper::policy
