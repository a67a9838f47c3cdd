// The layers of a policy, on rows of floats with vectors along a row.
//
// Each element of a product is one chain of fused multiply-adds over the inner index in order, so it depends neither on
// the vector width nor on other rows. Sums over a row have UNIT accumulators, added in the order of `across`.
#pragma once

#include <vector>

#include "layout.h"
#include "policy_choice.h"

namespace esper::policy {

inline Size padded(Size n) { return (n + UNIT - 1) / UNIT * UNIT; }

INLINE Vec load(const float* from) {
    Vec x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
}
INLINE void store(float* to, Vec x) { __builtin_memcpy(to, &x, sizeof x); }

// Rows that start at multiples of UNIT floats, zero-padded.
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

// A linear layer: its parameters' offsets, and weights packed for both directions. Outputs come in `blocks` of
// `out`, each starting at a multiple of UNIT if there are several.
struct Linear {
    Size in = 0, out = 0, blocks = 1, weight = 0, bias = -1;

    Size block() const { return blocks == 1 ? out : padded(out); }
    Size outputs() const { return blocks * block(); }
    float* start() { return (float*)starts.data(); }  // initial sums of the outputs: the bias
    void pack(const float* values);
    // Processes rows from `first` on in each argument.
    void forward(Size rows, Size first, const Rows& x, Rows& y, bool add = false) const;
    // Computes the input's gradient, from `into_first` on, from the output's, which stays unchanged.
    void backward(Size rows, Size first, const Rows& g, Size into_first, Rows& into, bool add) const;
    void add_gradient(Size rows, const Rows& x, const Rows& g, float* gradient) const;

    Vectors along = {}, back = {}, starts = {};
};

// Offsets of parameters, in the order in which they are asked for.
inline Size place(Size& at, Size count) { return (at += count) - count; }
inline Linear linear(Size& at, Size in, Size out) { return {in, out, 1, place(at, in * out), place(at, out)}; }

// The function of hidden layers: tanh, or max(0, x).
struct Activation {
    bool relu = false;

    void forward(Size rows, Rows& x) const;  // replaces x
    // Replaces g, the gradient of the output y, by that of the input.
    void backward(Size rows, const Rows& y, Rows& g) const;
};

// Layer norm over a row's `width` numbers (Ba et al. 2016, arXiv:1607.06450), with torch's eps.
struct LayerNorm {
    Size width = 0, gain = 0, bias = 0;

    void pack(const float* values);
    void forward(Size rows, Rows& x, Rows& y);  // replaces x by (x - mean) / deviation; writes the output to y
    // Replaces g, the gradient of y, by that of `forward`'s input.
    void backward(Size rows, const Rows& x, Rows& g, float* gradient);

    Vectors gains = {}, biases = {};
    std::vector<float> inverse = {}, means = {}, slopes = {};  // [rows]; inverse: 1 / deviation
};

// The cell of an LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000): rows from `first` on. Gates are padded, in
// torch's order: input, forget, cell, output.
struct Cell {
    Rows gates, before, c, tanh_c;  // gates: pre-activations, replaced by activations; `before`: previous c

    void forward(Size rows, Size first, Rows& h);
    // Uses the gradient of h and, in `later`, that of c from later steps; replaces `later` by that of the previous c.
    void backward(Size rows, Size first, const Rows& g, Rows& later);
};

}  // namespace esper::policy
