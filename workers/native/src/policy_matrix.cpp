#include "policy_matrix.h"

namespace esper::policy {

namespace {

struct Tile {
    Size inner;
    Left left;
    const float* right;
    Size right_row;
    const float* start;
    float* to;
    Size to_row, across;
    bool add;
};

template <int R, int V> INLINE void tile(const Tile& of) {
    Vec sum[R][V];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) sum[r][v] = of.start == nullptr ? Vec{} : load(of.start + v * LANES);
    const float *x = of.left.at, *w = of.right;
    for (Size k = 0; k < of.inner; k++, x += of.left.column, w += of.right_row) {
        Vec factor[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) factor[v] = load(w + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            const Vec each = splat(x[r * of.left.row]);
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
            if (left >= LANES) {
                store(to, of.add ? load(to) + sum[r][v] : sum[r][v]);
            } else {
                for (Size lane = 0; lane < left; lane++) to[lane] = of.add ? to[lane] + sum[r][v][lane] : sum[r][v][lane];
            }
        }
}

template <int V> void tile_of_rows(const Tile& of, Size rows) {
    switch (rows) {
        case 1: return tile<1, V>(of);
        case 2: return tile<2, V>(of);
        case 3: return tile<3, V>(of);
        case 4: return tile<4, V>(of);
        case 5: return tile<5, V>(of);
        case 6: return tile<6, V>(of);
        case 7: return tile<7, V>(of);
        default: return tile<8, V>(of);
    }
}

// As even as possible, so that no tile is left with too few accumulators to hide the latency.
INLINE Size rows_of_tile(Size left) {
    if (left <= DOWN) return left;
    return left < 2 * DOWN ? (left + 1) / 2 : DOWN;
}

constexpr Size BLOCK = 64;  // rows whose sums are taken together

}  // namespace

void multiply(Extents size, Left left, Right right, const float* start, float* to, Size to_row, bool add) {
    for (Size n = 0; n < size.across; n += PANEL) {
        Tile of{size.inner, left, right.at + n / PANEL * right.panel, right.row, start == nullptr ? nullptr : start + n,
            to + n, to_row, size.across - n, add};
        for (Size m = 0; m < size.down;) {
            const Size rows = rows_of_tile(size.down - m);
            if (of.across > LANES)
                tile_of_rows<2>(of, rows);
            else
                tile_of_rows<1>(of, rows);
            m += rows;
            of.left.at += rows * left.row;
            of.to += rows * to_row;
        }
    }
}

void add_products(Size rows, const float* g, Size g_row, Size outputs, const Rows& x, Size inputs, float* to) {
    for (Size r = 0; r < rows; r += BLOCK) {
        const Size count = rows - r < BLOCK ? rows - r : BLOCK;
        multiply({outputs, count, inputs}, {g + r * g_row, 1, g_row}, {x.row(r), PANEL, x.stride()}, nullptr, to, inputs,
            true);
    }
}

void add_columns(Size rows, const float* g, Size g_row, Size count, float* to) {
    for (Size i = 0; i < count; i += LANES) {
        const Size left = count - i < LANES ? count - i : LANES;
        for (Size from = 0; from < rows; from += BLOCK) {
            Vec sum = {};
            for (Size r = from; r < rows && r < from + BLOCK; r++) sum += load(g + r * g_row + i);
            for (Size lane = 0; lane < left; lane++) to[i + lane] += sum[lane];
        }
    }
}

void Linear::pack(const float* values) {
    const Size wide = (outputs() + PANEL - 1) / PANEL * PANEL, deep = (in + PANEL - 1) / PANEL * PANEL;
    forward_.fit(std::size_t(wide * in / LANES));
    backward_.fit(std::size_t(deep * outputs() / LANES));
    bias_.fit(std::size_t(wide / LANES));
    float *along = (float*)forward_.data(), *back = (float*)backward_.data();
    for (Size b = 0; b < blocks; b++)
        for (Size o = 0; o < out; o++) {
            const float* w = values + weight + (b * out + o) * in;
            const Size n = b * block() + o;
            float* column = along + n / PANEL * PANEL * in + n % PANEL;
            for (Size i = 0; i < in; i++) column[i * PANEL] = w[i];
            for (Size i = 0; i < in; i += PANEL) {
                const Size count = in - i < PANEL ? in - i : PANEL;
                std::memcpy(back + i * outputs() + n * PANEL, w + i, std::size_t(count) * sizeof(float));
            }
            if (bias >= 0) start()[n] = values[bias + b * out + o];
        }
}

void Linear::forward(Size rows, Left x, float* y, Size y_row, bool add) const {
    const float* start = bias < 0 ? nullptr : (const float*)bias_.data();
    multiply({rows, in, outputs()}, x, {(const float*)forward_.data(), in * PANEL, PANEL}, start, y, y_row, add);
}

// The gradient of the input, from that of the output: rows from `first` on of `into`.
void Linear::backward(Size rows, const float* g, Size g_row, Rows& into, Size first, bool add) const {
    const Right weights{(const float*)backward_.data(), outputs() * PANEL, PANEL};
    multiply({rows, outputs(), in}, {g, g_row, 1}, weights, nullptr, into.row(first), into.stride(), add);
}

void Linear::gradient(Size rows, const Rows& x, const Rows& g, float* gradient) const {
    for (Size b = 0; b < blocks; b++) {
        const float* of = g.row(0) + b * block();
        add_products(rows, of, g.stride(), out, x, in, gradient + weight + b * out * in);
        if (bias >= 0) add_columns(rows, of, g.stride(), out, gradient + bias + b * out);
    }
}

}  // namespace esper::policy
