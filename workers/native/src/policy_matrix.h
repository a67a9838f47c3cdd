// Products of matrices whose rows begin at multiples of UNIT floats, vectors along a row.
//
// An element of a product is one chain of fused multiply-adds over the inner index in order, so it depends neither on
// the width of vectors nor on the rows beside it.
#pragma once

#include "layout.h"

namespace esper::policy {

typedef std::ptrdiff_t Size;

constexpr int ACROSS = 2;                 // vectors of a tile
constexpr int DOWN = LANES == 16 ? 8 : 6;  // rows of a tile: as many accumulators as registers allow
constexpr int PANEL = ACROSS * LANES;

inline Size padded(Size n) { return (n + UNIT - 1) / UNIT * UNIT; }

INLINE Vec load(const float* from) {
    Vec x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
}
INLINE void store(float* to, Vec x) { __builtin_memcpy(to, &x, sizeof x); }

// Rows of floats. What lies beyond a row's width is zero unless it says otherwise.
class Rows {
public:
    void fit(Size rows, Size width) {
        stride_ = padded(width);
        memory_.fit(std::size_t((rows * stride_ + 2 * UNIT) / LANES));  // a panel may reach beyond the last row
    }
    float* row(Size r) { return (float*)memory_.data() + r * stride_; }
    const float* row(Size r) const { return (const float*)memory_.data() + r * stride_; }
    Size stride() const { return stride_; }

private:
    Vectors memory_;
    Size stride_ = 0;
};

struct Left {  // element (m, k) of the left factor
    const float* at;
    Size row, column;
};

struct Right {  // element (k, n) of the right factor: at[n / PANEL * panel + k * row + n % PANEL]
    const float* at;
    Size panel, row;
};

struct Extents {
    Size down, inner, across;
};

inline Left left_of(const Rows& x, Size row = 0) { return {x.row(row), x.stride(), 1}; }

// to [down][across] = start + left * right, or with `add` that is added. start [across, whole panels] or null: zeros.
void multiply(Extents size, Left left, Right right, const float* start, float* to, Size to_row, bool add);

// to[i][j] += sum over r of g[r][i] * x[r][j], in blocks of rows so that errors of rounding stay small.
void add_products(Size rows, const float* g, Size g_row, Size outputs, const Rows& x, Size inputs, float* to);

// to[i] += sum over r of g[r][i].
void add_columns(Size rows, const float* g, Size g_row, Size count, float* to);

// A linear layer: where its parameters lie, and its weights packed in panels for both directions. Outputs come in
// `blocks` of `out`; of several each begins at a multiple of UNIT.
struct Linear {
    Size in = 0, out = 0, blocks = 1, weight = 0, bias = -1;

    Size block() const { return blocks == 1 ? out : padded(out); }
    Size outputs() const { return blocks * block(); }
    void pack(const float* values);
    void forward(Size rows, Left x, float* y, Size y_row, bool add = false) const;
    void backward(Size rows, const float* g, Size g_row, Rows& into, Size first, bool add) const;
    void gradient(Size rows, const Rows& x, const Rows& g, float* gradient) const;
    float* start() { return (float*)bias_.data(); }

private:
    Vectors forward_, backward_, bias_;
};

}  // namespace esper::policy
