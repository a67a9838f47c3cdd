// How a seed's d joins the features of one pack, forward and backward.
#include "seed.h"

namespace esper {

namespace {

constexpr float TINY = 1e-12f;  // of a mean square: keeps the gradient of an exact identity finite

struct Joined {
    Vec shrink, squares, factor, flows;
};

}  // namespace

void Seed::open_gate(const Vec* h, int pack) {
    Vec* passed = memory_.opened.data() + pack * gate_.kept();
    pool(h, memory_.plane, memory_.channels, passed);
    perceptron_forward(gate_, values_.data(), passed);
}

void Seed::join(const Vec* h, Vec* out, int pack) {
    const Plane plane = memory_.plane;
    const int channels = memory_.channels;
    const Vec* d = memory_.outputs[layers_.size() - 1].pack(pack);
    if (!seed_.incubating && seed_.join == ESPER_MULTIPLY) {
        const Vec alpha = splat(seed_.alpha);
        each_pixel(plane, channels, [&](std::ptrdiff_t i) {
            out[i] = fma(h[i] * alpha, hyperbolic_tangent(d[i]), h[i]);
        });
        return;
    }
    const Vec of_d = summed(plane, channels, [&](std::ptrdiff_t i, Vec sum) { return fma(d[i], d[i], sum); });
    const Vec of_h = summed(plane, channels, [&](std::ptrdiff_t i, Vec sum) { return fma(h[i], h[i], sum); });
    const Vec tiny = splat(TINY * float(channels * plane.pixels()));
    const Vec ratio = root(of_h / pick(of_d < tiny, tiny, of_d));
    Joined& joined = ((Joined*)memory_.joined.data())[pack];
    joined.squares = of_d;
    joined.shrink = pick(ratio > splat(1.0f), splat(1.0f), ratio);
    joined.flows = (Vec)((ratio <= splat(1.0f)) & (of_d >= tiny));
    if (seed_.incubating) {
        joined.factor = joined.shrink;
        const Vec nothing = of_d * Vec{};  // but what is not finite shows
        each_pixel(plane, channels, [&](std::ptrdiff_t i) { out[i] = h[i] + nothing; });
        return;
    }
    joined.factor = joined.shrink * splat(seed_.alpha);
    if (gated_) {
        open_gate(h, pack);
        joined.factor *= memory_.opened[pack * gate_.kept() + gate_.kept() - 1];
    }
    const Vec factor = joined.factor;
    each_pixel(plane, channels, [&](std::ptrdiff_t i) { out[i] = fma(d[i], factor, h[i]); });
}

// From g, the gradient of the output: that of d into gd, and what goes into h besides through the layers into g.
void Seed::unjoin(const Vec* h, Vec* g, int pack, Vec* gd) {
    const Plane plane = memory_.plane;
    const int channels = memory_.channels;
    const Vec* d = memory_.outputs[layers_.size() - 1].pack(pack);
    if (!seed_.incubating && seed_.join == ESPER_MULTIPLY) {
        const Vec alpha = splat(seed_.alpha);
        each_pixel(plane, channels, [&](std::ptrdiff_t i) {
            const Vec t = hyperbolic_tangent(d[i]);
            gd[i] = g[i] * h[i] * alpha * fma(-t, t, splat(1.0f));
            g[i] = fma(g[i] * alpha, t, g[i]);
        });
        return;
    }
    const Joined& joined = ((const Joined*)memory_.joined.data())[pack];
    const Vec factor = joined.factor;
    const Vec along = summed(plane, channels, [&](std::ptrdiff_t i, Vec sum) { return fma(g[i], d[i], sum); });
    const Vec back = kept((Bits)joined.flows, factor * along / joined.squares);
    each_pixel(plane, channels, [&](std::ptrdiff_t i) { gd[i] = fma(g[i], factor, -(d[i] * back)); });
    if (!gated_) return;
    // A gate looks at h from behind a stop, a fossil's at h itself.
    Vec* scratch = memory_.small.data();
    Vec* looked = scratch + gate_.first.out;
    Vec opening = along * joined.shrink * splat(seed_.alpha);
    Vec* sums = sums_.data() + share(pack) * values_.size();
    const Vec* passed = memory_.opened.data() + pack * gate_.kept();
    perceptron_backward(gate_, values_.data(), passed, &opening, sums, seed_.fossil ? looked : nullptr, scratch);
    if (!seed_.fossil) return;
    const Vec part = splat(1.0f / float(plane.pixels()));
    for (int c = 0; c < channels; c++) {
        const Vec each = looked[c] * part;
        Vec* mine = g + c * plane.size();
        each_pixel(plane, 1, [&](std::ptrdiff_t at) { mine[at] += each; });
    }
}

}  // namespace esper
