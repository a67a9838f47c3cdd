#include "policy_layers.h"

namespace esper::policy {

namespace {

constexpr float EPS = 1e-5f;
constexpr Size BLOCK = 32;  // rows whose sums are folded together

// out[r] = the sum over j of `term(row r, j)`, for up to BLOCK rows.
template <class Term> INLINE void sums_of_rows(Size rows, Size width, float* out, Term&& term) {
    Vec sums[SHARES][BLOCK];
    for (Size r = 0; r < rows; r++) {
        Vec sum[SHARES] = {};
        for (Size j = 0; j < width; j += UNIT)
#pragma GCC unroll 4
            for (int s = 0; s < SHARES; s++) sum[s] = term(r, j + s * LANES, sum[s]);
        for (int s = 0; s < SHARES; s++) sums[s][r] = sum[s];
    }
    sums_across(sums[0], BLOCK, std::size_t(rows), out);
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

void squash(Size rows, Rows& x) {
    float* at = x.row(0);
    for (Size i = 0; i < rows * x.stride(); i += LANES) store(at + i, hyperbolic_tangent(load(at + i)));
}

void unsquash(Size rows, const Rows& y, Rows& g) {
    const float* of = y.row(0);
    float* at = g.row(0);
    for (Size i = 0; i < rows * y.stride(); i += LANES) {
        const Vec t = load(of + i);
        store(at + i, load(at + i) * fma(-t, t, splat(1.0f)));
    }
}

void LayerNorm::pack(const float* values) {
    pack_row(values + gain, width, gain_);
    pack_row(values + bias, width, bias_);
}

void LayerNorm::forward(Size rows, Rows& x, float* inverse, Rows& y) const {
    const float part = 1.0f / float(width);
    for (Size from = 0; from < rows; from += BLOCK) {
        const Size count = rows - from < BLOCK ? rows - from : BLOCK;
        float sums[BLOCK];
        sums_of_rows(count, width, sums, [&](Size r, Size j, Vec sum) { return sum + load(x.row(from + r) + j); });
        for (Size r = 0; r < count; r++) {
            const Vec mean = splat(sums[r] * part);
            float* at = x.row(from + r);
            for (Size j = 0; j < x.stride(); j += LANES) store(at + j, kept(within(width, j), load(at + j) - mean));
        }
        sums_of_rows(count, width, sums, [&](Size r, Size j, Vec sum) {
            const Vec d = load(x.row(from + r) + j);
            return fma(d, d, sum);
        });
        for (Size r = 0; r < count; r++) {
            inverse[from + r] = 1.0f / __builtin_sqrtf(sums[r] * part + EPS);
            const Vec factor = splat(inverse[from + r]);
            float *at = x.row(from + r), *to = y.row(from + r);
            for (Size j = 0; j < x.stride(); j += LANES) {
                const Vec normed = load(at + j) * factor;
                store(at + j, normed);
                store(to + j, fma(normed, gain_[std::size_t(j / LANES)], bias_[std::size_t(j / LANES)]));
            }
        }
    }
}

void LayerNorm::backward(Size rows, const Rows& x, const float* inverse, Rows& g, float* gradient) const {
    const float part = 1.0f / float(width);
    for (Size i = 0; i < width; i += LANES) {
        Vec of_gain = {}, of_bias = {};
        for (Size r = 0; r < rows; r++) {
            of_gain = fma(load(g.row(r) + i), load(x.row(r) + i), of_gain);
            of_bias += load(g.row(r) + i);
        }
        for (Size k = 0; k < LANES && i + k < width; k++) {
            gradient[gain + i + k] += of_gain[k];
            gradient[bias + i + k] += of_bias[k];
        }
    }
    for (Size from = 0; from < rows; from += BLOCK) {
        const Size count = rows - from < BLOCK ? rows - from : BLOCK;
        float sums[BLOCK], along[BLOCK];
        for (Size r = 0; r < count; r++) {
            float* at = g.row(from + r);
            for (Size j = 0; j < g.stride(); j += LANES) store(at + j, load(at + j) * gain_[std::size_t(j / LANES)]);
        }
        sums_of_rows(count, width, sums, [&](Size r, Size j, Vec sum) { return sum + load(g.row(from + r) + j); });
        sums_of_rows(count, width, along, [&](Size r, Size j, Vec sum) {
            return fma(load(g.row(from + r) + j), load(x.row(from + r) + j), sum);
        });
        for (Size r = 0; r < count; r++) {
            const Vec mean = splat(sums[r] * part), slope = splat(along[r] * part), factor = splat(inverse[from + r]);
            const float* normed = x.row(from + r);
            float* at = g.row(from + r);
            for (Size j = 0; j < g.stride(); j += LANES) {
                const Vec flat = load(at + j) - mean;
                store(at + j, kept(within(width, j), factor * fma(-load(normed + j), slope, flat)));
            }
        }
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
