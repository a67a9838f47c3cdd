// Two linear layers on pooled features, SiLU between them and a sigmoid behind, per sample.
#pragma once

#include "layout.h"

namespace esper {

// Offsets into a row of parameters: first [in][hidden], its bias [hidden] or -1, second [hidden][out], its bias [out].
struct Perceptron {
    int in = 0, hidden = 0, out = 0;
    int first = 0, first_bias = -1, second = 0, second_bias = 0;

    int kept() const { return in + 2 * hidden + out; }  // vectors that `passed` holds for one pack
};

// `passed`: [pooled input | before SiLU | hidden | output]; the first part is given.
inline void perceptron_forward(const Perceptron& layers, const float* p, Vec* passed) {
    const Vec* x = passed;
    Vec *before = passed + layers.in, *hidden = before + layers.hidden, *out = hidden + layers.hidden;
    for (int h = 0; h < layers.hidden; h++) {
        Vec a = splat(layers.first_bias < 0 ? 0.0f : p[layers.first_bias + h]);
        for (int c = 0; c < layers.in; c++) a = fma(x[c], splat(p[layers.first + c * layers.hidden + h]), a);
        before[h] = a;
        hidden[h] = a * logistic(a);
    }
    for (int o = 0; o < layers.out; o++) {
        Vec a = splat(p[layers.second_bias + o]);
        for (int h = 0; h < layers.hidden; h++) a = fma(hidden[h], splat(p[layers.second + h * layers.out + o]), a);
        out[o] = logistic(a);
    }
}

// From the gradient of the output, which is overwritten; those of parameters are added to `sums`, that of the pooled
// input is written to `into` unless null. `scratch`: [hidden].
inline void perceptron_backward(
    const Perceptron& layers, const float* p, const Vec* passed, Vec* g, Vec* sums, Vec* into, Vec* scratch
) {
    const Vec* x = passed;
    const Vec *before = passed + layers.in, *hidden = before + layers.hidden, *out = hidden + layers.hidden;
    for (int o = 0; o < layers.out; o++) {
        g[o] = g[o] * (out[o] * (splat(1.0f) - out[o]));
        sums[layers.second_bias + o] += g[o];
    }
    for (int h = 0; h < layers.hidden; h++) {
        Vec d = {};
        for (int o = 0; o < layers.out; o++) {
            const int at = layers.second + h * layers.out + o;
            sums[at] = fma(g[o], hidden[h], sums[at]);
            d = fma(g[o], splat(p[at]), d);
        }
        const Vec opened = logistic(before[h]);
        scratch[h] = d * (opened * fma(before[h], splat(1.0f) - opened, splat(1.0f)));
        if (layers.first_bias >= 0) sums[layers.first_bias + h] += scratch[h];
    }
    for (int c = 0; c < layers.in; c++) {
        Vec d = {};
        for (int h = 0; h < layers.hidden; h++) {
            const int at = layers.first + c * layers.hidden + h;
            sums[at] = fma(scratch[h], x[c], sums[at]);
            d = fma(scratch[h], splat(p[at]), d);
        }
        if (into != nullptr) into[c] = d;
    }
}

}  // namespace esper
