// The layers of the policy beside the linear ones, on rows; sums over a row have UNIT accumulators, added up as `across`
// does.
#pragma once

#include "policy_matrix.h"

namespace esper::policy {

// x becomes tanh x.
void squash(Size rows, Rows& x);
// g, the gradient of y = tanh x, becomes that of x.
void unsquash(Size rows, const Rows& y, Rows& g);

// Layer norm over a row's `width` numbers (Ba et al. 2016, arXiv:1607.06450), with torch's eps.
struct LayerNorm {
    Size width = 0, gain = 0, bias = 0;  // where the parameters lie

    void pack(const float* values);
    // x becomes (x - mean) / deviation, `inverse` [rows] 1 / deviation, y the output.
    void forward(Size rows, Rows& x, float* inverse, Rows& y) const;
    // g, the gradient of y, becomes that of the input of `forward`.
    void backward(Size rows, const Rows& x, const float* inverse, Rows& g, float* gradient) const;

private:
    Vectors gain_, bias_;
};

// The cell of an LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000) in torch's order of gates: input, forget,
// cell, output, each padded.
struct Cell {
    Size width = 0;

    // gates: before their activations, which they become. `tanh_c` and h: of the new c. `before` is c before.
    void forward(Size rows, Rows& gates, Size first, const float* before, Rows& c, Rows& tanh_c, Rows& h) const;
    // From the gradient of h and that of c from later steps, in `later`, which becomes that of c before.
    void backward(
        Size rows, Rows& gates, Size first, const float* before, const Rows& tanh_c, const Rows& g, Rows& later
    ) const;
};

}  // namespace esper::policy
