// Per sample: linear, SiLU, linear, sigmoid, on pooled features.
#pragma once

#include "linear.h"

namespace esper {

struct Perceptron {
    Linear first, second;

    int kept() const { return first.in + 2 * first.out + second.out; }  // vectors that `passed` holds for one pack
};

// `passed`: [pooled input | before SiLU | hidden | output]; the caller fills the first part.
inline void perceptron_forward(const Perceptron& layers, const float* p, Vec* passed) {
    const auto& [first, second] = layers;
    Vec *before = passed + first.in, *hidden = before + first.out, *out = hidden + first.out;
    for (int h = 0; h < first.out; h++) {
        before[h] = linear_output(first, p, passed, h);
        hidden[h] = before[h] * logistic(before[h]);
    }
    for (int o = 0; o < second.out; o++) out[o] = logistic(linear_output(second, p, hidden, o));
}

// Given the output's gradient, which is overwritten, adds the parameters' to `sums` and writes the pooled
// input's to `into` unless null. `scratch`: as many vectors as hidden units.
inline void perceptron_backward(
    const Perceptron& layers, const float* p, const Vec* passed, Vec* g, Vec* sums, Vec* into, Vec* scratch
) {
    const auto& [first, second] = layers;
    const Vec *before = passed + first.in, *hidden = before + first.out, *out = hidden + first.out;
    for (int o = 0; o < second.out; o++) g[o] = g[o] * (out[o] * (splat(1.0f) - out[o]));
    linear_backward(second, p, hidden, g, sums, scratch);
    for (int h = 0; h < first.out; h++) {
        const Vec opened = logistic(before[h]);
        scratch[h] *= opened * fma(before[h], splat(1.0f) - opened, splat(1.0f));
    }
    linear_backward(first, p, passed, scratch, sums, into);
}

}  // namespace esper
