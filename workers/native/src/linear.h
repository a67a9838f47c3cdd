// A linear layer on pooled features, per sample; and the pooling.
#pragma once

#include "layout.h"

namespace esper {

// Offsets into a row of parameters: weight [in][out], bias [out] or -1.
struct Linear {
    int in = 0, out = 0, weight = 0, bias = -1;

    int at(int c, int o) const { return weight + c * out + o; }
};

inline Vec linear_output(const Linear& layer, const float* p, const Vec* x, int o) {
    Vec a = splat(layer.bias < 0 ? 0.0f : p[layer.bias + o]);
    for (int c = 0; c < layer.in; c++) a = fma(x[c], splat(p[layer.at(c, o)]), a);
    return a;
}

// Given g [out], adds the parameters' gradients to `sums` and writes x's gradient to `into`, which may be x itself,
// unless null.
inline void linear_backward(
    const Linear& layer, const float* p, const Vec* x, const Vec* g, Vec* sums, Vec* into
) {
    if (layer.bias >= 0)
        for (int o = 0; o < layer.out; o++) sums[layer.bias + o] += g[o];
    for (int c = 0; c < layer.in; c++) {
        Vec d = {};
        for (int o = 0; o < layer.out; o++) {
            const int at = layer.at(c, o);
            sums[at] = fma(g[o], x[c], sums[at]);
            d = fma(g[o], splat(p[at]), d);
        }
        if (into != nullptr) into[c] = d;
    }
}

// The mean over the pixels of each channel.
inline void pool(const Vec* x, Plane plane, int channels, Vec* means) {
    const Vec part = splat(1.0f / float(plane.pixels()));
    for (int c = 0; c < channels; c++) {
        const Vec* from = x + c * plane.size();
        means[c] = part * summed(plane, 1, [&](std::ptrdiff_t at, Vec sum) { return sum + from[at]; });
    }
}

}  // namespace esper
