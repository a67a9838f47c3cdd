#include "policy_layers.h"

namespace esper::policy {

namespace {

constexpr float EPS = 1e-5f;

// out[r] = the sum over a row of x, or of x * times.
void sums_of_rows(Size rows, const Rows& x, const Rows* times, float* out) {
    constexpr Size BLOCK = 32;
    for (Size from = 0; from < rows; from += BLOCK) {
        const Size count = rows - from < BLOCK ? rows - from : BLOCK;
        Vec sums[SHARES][BLOCK] = {};
        for (Size r = 0; r < count; r++)
            for (Size j = 0; j < x.stride(); j += LANES) {
                Vec& sum = sums[j / LANES % SHARES][r];
                const Vec term = load(x.row(from + r) + j);
                sum = times == nullptr ? sum + term : fma(term, load(times->row(from + r) + j), sum);
            }
        sums_across(sums[0], BLOCK, std::size_t(count), out + from);
    }
}

INLINE Bits within(Size width, Size j) {
    const Size left = width - j;
    return first_lanes(int(left > LANES ? LANES : left < 0 ? 0 : left));
}

void pack_row(const float* from, Size width, Vectors& to) {
    to.fit(std::size_t(padded(width) / LANES));
    std::memcpy((void*)to.data(), from, std::size_t(width) * sizeof(float));
}

}  // namespace

void Activation::forward(Size rows, Rows& x) const {
    for (float* at = x.row(0); at < x.row(rows); at += LANES)
        store(at, relu ? rectified(load(at)) : hyperbolic_tangent(load(at)));
}

void Activation::backward(Size rows, const Rows& y, Rows& g) const {
    for (Size i = 0; i < rows * y.stride(); i += LANES) {
        const Vec t = load(y.row(0) + i), of = load(g.row(0) + i);
        store(g.row(0) + i, relu ? pick(t <= Vec{}, Vec{}, of) : of * fma(-t, t, splat(1.0f)));
    }
}

void LayerNorm::pack(const float* values) {
    pack_row(values + gain, width, gains);
    pack_row(values + bias, width, biases);
}

void LayerNorm::forward(Size rows, Rows& x, Rows& y) {
    const float part = 1.0f / float(width);
    for (std::vector<float>* of : {&inverse, &means, &slopes}) of->resize(rows);
    sums_of_rows(rows, x, nullptr, means.data());
    for (Size r = 0; r < rows; r++)
        for (Size j = 0; j < x.stride(); j += LANES) {
            float* at = x.row(r) + j;
            store(at, kept(within(width, j), load(at) - splat(means[r] * part)));
        }
    sums_of_rows(rows, x, &x, slopes.data());
    for (Size r = 0; r < rows; r++) {
        inverse[r] = 1.0f / __builtin_sqrtf(slopes[r] * part + EPS);
        for (Size j = 0; j < x.stride(); j += LANES) {
            const Vec normed = load(x.row(r) + j) * splat(inverse[r]);
            store(x.row(r) + j, normed);
            store(y.row(r) + j, fma(normed, gains[j / LANES], biases[j / LANES]));
        }
    }
}

void LayerNorm::backward(Size rows, const Rows& x, Rows& g, float* gradient) {
    const float part = 1.0f / float(width);
    for (Size j = 0; j < g.stride(); j += LANES) {
        Vec of_gain = {}, of_bias = {};
        for (Size r = 0; r < rows; r++) {
            const Vec of = load(g.row(r) + j);
            of_gain = fma(of, load(x.row(r) + j), of_gain);
            of_bias += of;
            store(g.row(r) + j, of * gains[j / LANES]);
        }
        for (Size k = 0; k < LANES && j + k < width; k++) {
            gradient[gain + j + k] += of_gain[k];
            gradient[bias + j + k] += of_bias[k];
        }
    }
    sums_of_rows(rows, g, nullptr, means.data());
    sums_of_rows(rows, g, &x, slopes.data());
    for (Size r = 0; r < rows; r++)
        for (Size j = 0; j < g.stride(); j += LANES) {
            float* at = g.row(r) + j;
            const Vec flat = load(at) - splat(means[r] * part), normed = load(x.row(r) + j);
            store(at, kept(within(width, j), splat(inverse[r]) * fma(-normed, splat(slopes[r] * part), flat)));
        }
}

void Cell::forward(Size rows, Size first, Rows& h) {
    const Size apart = h.stride();
    for (Size r = first; r < first + rows; r++) {
        float* gate = gates.row(r);
        for (Size j = 0; j < apart; j += LANES) {
            const Vec i = logistic(load(gate + j)), f = logistic(load(gate + apart + j));
            const Vec g = hyperbolic_tangent(load(gate + 2 * apart + j)), o = logistic(load(gate + 3 * apart + j));
            const Vec now = fma(i, g, f * load(before.row(r) + j)), squashed = hyperbolic_tangent(now);
            const Vec activated[] = {i, f, g, o};
            for (int k = 0; k < 4; k++) store(gate + k * apart + j, activated[k]);
            store(c.row(r) + j, now);
            store(tanh_c.row(r) + j, squashed);
            store(h.row(r) + j, o * squashed);
        }
    }
}

void Cell::backward(Size rows, Size first, const Rows& g_h, Rows& later) {
    const Size apart = c.stride();
    const Vec one = splat(1.0f);
    for (Size r = 0; r < rows; r++) {
        float* gate = gates.row(first + r);
        for (Size j = 0; j < apart; j += LANES) {
            const Vec i = load(gate + j), f = load(gate + apart + j), g = load(gate + 2 * apart + j);
            const Vec o = load(gate + 3 * apart + j), squashed = load(tanh_c.row(first + r) + j);
            const Vec of_h = load(g_h.row(first + r) + j);
            const Vec of_c = fma(of_h * o, fma(-squashed, squashed, one), load(later.row(r) + j));
            store(gate + j, of_c * g * (i * (one - i)));
            store(gate + apart + j, of_c * load(before.row(first + r) + j) * (f * (one - f)));
            store(gate + 2 * apart + j, of_c * i * fma(-g, g, one));
            store(gate + 3 * apart + j, of_h * squashed * (o * (one - o)));
            store(later.row(r) + j, of_c * f);
        }
    }
}

}  // namespace esper::policy
