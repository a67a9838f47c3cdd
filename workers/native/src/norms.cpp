#include "norms.h"

namespace esper {

namespace {

template <bool relu>
INLINE void normalised(
    const Packs& packs, Plane plane, const GroupNorm& norm, Vec* mean, Vec* inverse, int pack, int group
) {
    const int each = norm.channels / norm.groups;
    const float count = 1.0f / float(each * plane.pixels());
    const std::ptrdiff_t from = group * each * plane.size();
    const Vec* in = packs.in + pack * packs.in_apart + from;
    Vec* out = packs.out + pack * packs.out_apart + from;
    const Vec centre = splat(count) * summed(plane, each, [&](std::ptrdiff_t i, Vec sum) { return sum + in[i]; });
    const Vec squares = summed(plane, each, [&](std::ptrdiff_t i, Vec sum) {
        const Vec d = in[i] - centre;
        return fma(d, d, sum);
    });
    const Vec scale = splat(1.0f) / root(fma(squares, splat(count), splat(NORM_EPS)));
    for (int c = 0; c < each; c++) {
        const Vec gain = scale * splat(norm.gain[group * each + c]);
        const Vec bias = fma(-centre, gain, splat(norm.bias[group * each + c]));
        const Vec* x = in + c * plane.size();
        Vec* y = out + c * plane.size();
        each_pixel(plane, 1, [&](std::ptrdiff_t i) {
            const Vec z = fma(x[i], gain, bias);
            y[i] = relu ? rectified(z) : z;
        });
    }
    mean[pack * norm.groups + group] = centre;
    inverse[pack * norm.groups + group] = scale;
}

template <bool relu>
INLINE void back_of_group(
    const Packs& packs, Plane plane, const GroupNorm& norm, const NormBack& back, int pack, int group
) {
    const int each = norm.channels / norm.groups;
    const std::ptrdiff_t from = group * each * plane.size();
    const Vec* in = packs.in + pack * packs.in_apart + from;
    const Vec* out = relu ? back.y + pack * back.y_apart + from : nullptr;
    Vec* grad = packs.out + pack * packs.out_apart + from;
    const Vec centre = back.mean[pack * norm.groups + group], scale = back.inverse[pack * norm.groups + group];
    const std::size_t shift = share(back.first_pack + pack) * back.parameters;
    Vec plain = {}, along = {};  // sums over the group of the normalised value's gradient, and of it times the value
    for (int c = 0; c < each; c++) {
        Vec sum = {}, times = {};
        each_pixel(plane, 1, [&](std::ptrdiff_t at) {
            const std::ptrdiff_t i = c * plane.size() + at;
            Vec g = grad[i];
            if (relu) {
                g = kept(out[i] > Vec{}, g);
                grad[i] = g;
            }
            sum += g;
            times = fma(g, (in[i] - centre) * scale, times);
        });
        const int channel = group * each + c;
        back.bias_sums[shift + channel] += sum;
        back.gain_sums[shift + channel] += times;
        plain = fma(sum, splat(norm.gain[channel]), plain);
        along = fma(times, splat(norm.gain[channel]), along);
    }
    const Vec count = splat(1.0f / float(each * plane.pixels()));
    const Vec slope = -(along * count) * scale * scale;
    const Vec constant = -(plain * count) * scale;
    for (int c = 0; c < each; c++) {
        const Vec factor = scale * splat(norm.gain[group * each + c]);
        each_pixel(plane, 1, [&](std::ptrdiff_t at) {
            const std::ptrdiff_t i = c * plane.size() + at;
            grad[i] = fma(grad[i], factor, fma(in[i] - centre, slope, constant));
        });
    }
}

}  // namespace

void norm_forward(const Packs& packs, Plane plane, const GroupNorm& norm, bool relu, Vec* mean, Vec* inverse) {
    for (int pack = 0; pack < packs.count; pack++)
        for (int group = 0; group < norm.groups; group++) {
            if (relu)
                normalised<true>(packs, plane, norm, mean, inverse, pack, group);
            else
                normalised<false>(packs, plane, norm, mean, inverse, pack, group);
        }
}

void norm_backward(const Packs& packs, Plane plane, const GroupNorm& norm, const NormBack& back) {
    for (int pack = 0; pack < packs.count; pack++)
        for (int group = 0; group < norm.groups; group++) {
            if (back.y != nullptr)
                back_of_group<true>(packs, plane, norm, back, pack, group);
            else
                back_of_group<false>(packs, plane, norm, back, pack, group);
        }
}

}  // namespace esper
