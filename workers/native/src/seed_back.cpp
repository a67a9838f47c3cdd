// The backward pass of a seed's layers.
#include "seed.h"

namespace esper {

void Seed::backward(const Maps& h, Maps& g, int packs) {
    if (!learns_) {  // blending out: the output's gradient reaches h past the layers only
        if (!seed_.incubating && seed_.join == ESPER_MULTIPLY)
            for (int pack = 0; pack < packs; pack++)
                unjoin(h.pack(pack), g.pack(pack), pack, memory_.gradient[0].pack(pack));
        return;
    }
    const int group = packs_at_once(memory_.plane.size() * memory_.channels);
    for (int first = 0; first < packs; first += group) {
        const int count = packs - first < group ? packs - first : group;
        for (int pack = first; pack < first + count; pack++)
            unjoin(h.pack(pack), g.pack(pack), pack, memory_.gradient[0].pack(pack));
        layers_backward(h, g, first, count);
    }
}

// Gradients of layers lie in memory_.gradient, whose packs are as far apart whatever the channels of a layer.
void Seed::layers_backward(const Maps& h, Maps& g, int first, int count) {
    const Plane plane = memory_.plane;
    const std::size_t parameters = values_.size();
    Maps *now = &memory_.gradient[0], *next = &memory_.gradient[1];
    for (std::size_t i = layers_.size(); i-- > 0;) {
        const Layer& layer = layers_[i];
        const bool into = i > 0 || seed_.fossil;
        const Maps& input = i > 0 ? memory_.outputs[i - 1] : h;
        const Maps& output = memory_.outputs[i];
        const Packs in_place{input.pack(first), input.stride, now->pack(first), now->stride, count};
        if (layer.kind == ESPER_NORM) {
            Vec* moments = memory_.kept[i].data() + first * layer.kept();
            const GroupNorm norm{values_.data() + layer.at[0], values_.data() + layer.at[1], layer.in, layer.size};
            const NormBack back{layer.relu ? output.pack(first) : nullptr, output.stride, moments,
                moments + count * layer.size, sums_.data() + layer.at[0], sums_.data() + layer.at[1], parameters,
                first};
            norm_backward(in_place, plane, norm, back);
            continue;
        }
        if (layer.relu || layer.kind == ESPER_RELU)
            for (int pack = first; pack < first + count; pack++) {
                const Vec* y = output.pack(pack);
                Vec* gd = now->pack(pack);
                each_pixel(plane, layer.out, [&](std::ptrdiff_t at) { gd[at] = kept(y[at] > Vec{}, gd[at]); });
            }
        if (layer.kind == ESPER_CONV || layer.kind == ESPER_DEPTHWISE) {
            const Kernel kernel = layer.kernel(values_.data());
            const Slab slab{input.pack(first), input.stride, plane, now->pack(first), now->stride, plane, 0,
                plane.height, first, count};
            const Packs turned{now->pack(first), now->stride, next->pack(first), next->stride, count};
            if (layer.kind == ESPER_CONV) {
                add_kernel_gradient(kernel, slab, sums_.data() + layer.at[0], parameters);
                if (into)
                    convolve_packs(turned, plane, turned_[i].data(), layer.out, layer.in, layer.size, false);
            } else {
                add_depthwise_gradient(kernel, slab, sums_.data() + layer.at[0], parameters);
                if (into) convolve_depthwise(turned, plane, kernel, false, true);
            }
            std::swap(now, next);
            continue;
        }
        for (int pack = first; pack < first + count; pack++) {
            if (layer.kind == ESPER_TOWARDS)
                towards_back(layer, input.pack(pack), h.pack(pack), now->pack(pack), g.pack(pack), pack);
            if (layer.kind == ESPER_EXCITE) excite_back(i, input.pack(pack), now->pack(pack), pack, into);
        }
    }
    if (!seed_.fossil) return;
    for (int pack = first; pack < first + count; pack++) {
        const Vec* gd = now->pack(pack);
        Vec* into = g.pack(pack);
        each_pixel(plane, memory_.channels, [&](std::ptrdiff_t at) { into[at] += gd[at]; });
    }
}

void Seed::towards_back(const Layer& layer, const Vec* x, const Vec* h, Vec* gd, Vec* g, int pack) {
    const Vec scale = hyperbolic_tangent(splat(values_[layer.at[0]]));
    const Vec moved = summed(memory_.plane, layer.out,
        [&](std::ptrdiff_t at, Vec sum) { return fma(gd[at], x[at] - h[at], sum); });
    each_pixel(memory_.plane, layer.out, [&](std::ptrdiff_t at) { gd[at] *= scale; });
    Vec& sum = sums_[share(pack) * values_.size() + layer.at[0]];
    sum = fma(moved, fma(-scale, scale, splat(1.0f)), sum);
    if (seed_.fossil) each_pixel(memory_.plane, layer.out, [&](std::ptrdiff_t at) { g[at] -= gd[at]; });
}

void Seed::excite_back(std::size_t i, const Vec* x, Vec* gd, int pack, bool into) {
    const Layer& layer = layers_[i];
    const Perceptron excite = layer.perceptron();
    const Plane plane = memory_.plane;
    const Vec* passed = memory_.kept[i].data() + pack * layer.kept();
    const Vec* factor = passed + excite.kept() - layer.in;
    Vec *felt = memory_.small.data(), *looked = felt + layer.in, *scratch = looked + layer.in;
    for (int c = 0; c < layer.in; c++) {
        const Vec *g_of = gd + c * plane.size(), *x_of = x + c * plane.size();
        felt[c] = summed(plane, 1, [&](std::ptrdiff_t at, Vec sum) { return fma(g_of[at], x_of[at], sum); });
    }
    Vec* sums = sums_.data() + share(pack) * values_.size();
    perceptron_backward(excite, values_.data(), passed, felt, sums, into ? looked : nullptr, scratch);
    if (!into) return;
    const Vec part = splat(1.0f / float(plane.pixels()));
    for (int c = 0; c < layer.in; c++) {
        const Vec less = factor[c] - splat(1.0f), each = looked[c] * part;
        const std::ptrdiff_t from = c * plane.size();
        each_pixel(plane, 1, [&](std::ptrdiff_t at) { gd[from + at] = fma(gd[from + at], less, each); });
    }
}

}  // namespace esper
