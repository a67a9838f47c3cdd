#include "host.h"

namespace esper {

namespace {

constexpr std::ptrdiff_t LARGE = 64 << 10;  // bytes of a pack's activations that are gone through in parts
constexpr int PART = 4;                     // rows; even, because two are pooled
constexpr float FAR = 16.0f;  // square of a mean, in variances: rounding then takes a millionth of a variance

}  // namespace

void TrainedLevel::pack(const float* row) {
    row_ = row;
    for (int o = 0; o < shape_.out; o++) memory_.sign[o] = __builtin_signbit(row[shape_.gain + o]) ? -1.0f : 1.0f;
    pack_kernel(shape_.weights(row), memory_.sign.data(), memory_.packed.data());
}

void TrainedLevel::find_shift(const float* row, const Maps& in, const Batch& batch) {
    pack(row);
    for (float& start : memory_.shift) start = 0.0f;
    const int packs = batch.packs < SHARES ? batch.packs : SHARES;
    const int samples = batch.samples < UNIT ? batch.samples : UNIT;
    convolve_batch(in, batch, packs);
    sums_across(memory_.lanes.data(), 2 * shape_.out, 2 * shape_.out, memory_.sums.data());
    const float count = float(samples) * float(shape_.plane.pixels());
    for (int o = 0; o < shape_.out; o++) memory_.shift[o] = -(memory_.sums[o] / count);
}

// --- forward --------------------------------------------------------------------------------------------------------

void TrainedLevel::convolve_batch(const Maps& in, const Batch& batch, int packs) {
    memory_.lanes.clear();
    if (shape_.plane.single()) {
        convolve_singles(in, batch, packs);
        return;
    }
    for (int pack = 0; pack < packs; pack++) {
        if (batch.in_pack(pack) == LANES)
            convolve_pack<false>(in, pack, Bits{});
        else
            convolve_pack<true>(in, pack, first_lanes(batch.in_pack(pack)));
    }
}

template <bool ragged> void TrainedLevel::convolve_pack(const Maps& in, int pack, Bits valid) {
    const Plane plane = shape_.plane, top_plane = memory_.top.plane;
    const std::ptrdiff_t size = plane.size(), top_size = top_plane.size();
    Vec* wide = memory_.wide.pack(pack);
    Vec* top = shape_.pools ? memory_.top.pack(pack) : nullptr;
    Vec* sums = memory_.lanes.data() + share(pack) * 2 * shape_.out;
    Vec* squares = sums + shape_.out;
    const bool pools = shape_.pools;
    auto done = [&](int o, int y, int x, Vec a, Vec b, Vec c, Vec d) __attribute__((always_inline)) {
        const bool right = x + 1 < plane.width, below = y + 1 < plane.height;
        store(wide + o * size, plane, y, x, a, b, c, d);
        if (right && below) {
            if (pools) top[o * top_size + top_plane.at(y / 2, x / 2)] = greatest(greatest(a, b), greatest(c, d));
        } else {
            if (!right) b = Vec{};
            if (!below) c = Vec{};
            d = Vec{};
        }
        if (ragged) {
            a = kept(valid, a);
            b = kept(valid, b);
            c = kept(valid, c);
            d = kept(valid, d);
        }
        sums[o] += (a + b) + (c + d);
        squares[o] += fma(a, a, b * b) + fma(c, c, d * d);
    };
    convolve(in.pack(pack), plane, memory_.packed.data(), shape_.in, shape_.out, shape_.taps, memory_.shift.data(), done);
}

void TrainedLevel::convolve_singles(const Maps& in, const Batch& batch, int packs) {
    const std::ptrdiff_t apart = memory_.wide.stride;
    Vec* wide = memory_.wide.pack(0);
    convolve_single(in.pack(0), in.stride, packs, memory_.packed.data(), shape_.in, shape_.out, memory_.shift.data(),
        [&](int pack, int o, Vec a) { wide[pack * apart + o] = a; });
    for (int pack = 0; pack < packs; pack++) {
        const Bits valid = first_lanes(batch.in_pack(pack));
        Vec* sums = memory_.lanes.data() + share(pack) * 2 * shape_.out;
        for (int o = 0; o < shape_.out; o++) {
            const Vec a = kept(valid, wide[pack * apart + o]);
            sums[o] += a;
            sums[shape_.out + o] = fma(a, a, sums[shape_.out + o]);
        }
    }
}

// One pass about the last step's mean cancels where the mean has moved far: the moments about this step's.
void TrainedLevel::recentre(int o, float& centre, float& spread, const Batch& batch) const {
    Sum sum = {}, squares = {};
    for (int pack = 0; pack < batch.packs; pack++) {
        const Bits valid = first_lanes(batch.in_pack(pack));
        const Vec* x = memory_.wide.pack(pack) + o * shape_.plane.size();
        each_pixel(shape_.plane, 1, [&](std::ptrdiff_t i) {
            const Vec d = kept(valid, x[i] - splat(centre));
            sum.of[share(pack)] += d;
            squares.of[share(pack)] = fma(d, d, squares.of[share(pack)]);
        });
    }
    const float off = across(sum) / count_;
    centre += off;
    spread = across(squares) / count_ - off * off;
}

void TrainedLevel::forward(const float* row, const Maps& in, Maps& out, const Batch& batch, float* mean, float* var) {
    pack(row);
    convolve_batch(in, batch, batch.packs);
    sums_across(memory_.lanes.data(), 2 * shape_.out, 2 * shape_.out, memory_.sums.data());
    count_ = float(batch.samples) * float(shape_.plane.pixels());
    for (int o = 0; o < shape_.out; o++) {
        float centre = memory_.sums[o] / count_;
        float spread = memory_.sums[shape_.out + o] / count_ - centre * centre;
        if (centre * centre > FAR * (spread + BN_EPS)) recentre(o, centre, spread, batch);
        if (spread < 0.0f) spread = 0.0f;
        memory_.mean[o] = centre;
        memory_.spread[o] = spread + BN_EPS;
        memory_.scale[o] = __builtin_fabsf(row[shape_.gain + o]) / __builtin_sqrtf(spread + BN_EPS);
        const float whole = (centre - memory_.shift[o]) * memory_.sign[o];
        mean[o] += BN_MOMENTUM * (whole - mean[o]);
        const float others = count_ > 2.0f ? count_ - 1.0f : 1.0f;
        var[o] = (1.0f - BN_MOMENTUM) * var[o] + BN_MOMENTUM * (spread * count_ / others);
    }
    const Maps& top = shape_.pools ? memory_.top : memory_.wide;
    const Plane from = top.plane, to = shape_.after;
    for (int pack = 0; pack < batch.packs; pack++)
        for (int o = 0; o < shape_.out; o++) {
            const Vec scale = splat(memory_.scale[o]), mean = splat(memory_.mean[o]);
            const Vec bias = splat(row[shape_.bias + o]);
            const Vec* x = top.pack(pack) + o * from.size();
            Vec* z = out.pack(pack) + o * to.size();
            for (int y = 0; y < to.height; y++) {
                const Vec* xs = x + from.at(y, 0);
                Vec* zs = z + to.at(y, 0);
                for (int i = 0; i < to.width; i++) zs[i] = rectified(fma(xs[i] - mean, scale, bias));
            }
        }
    for (int o = 0; o < shape_.out; o++) memory_.shift[o] -= memory_.mean[o];  // for the next step
}

// --- backward -------------------------------------------------------------------------------------------------------

// The gradient before the ReLU, and of batch norm at the wide side: a multiple of the winners' gradient, a multiple of
// the activation and a constant per channel (Ioffe and Szegedy 2015, arXiv:1502.03167, section 3). Sums come before
// products, so that one value per channel, which is its own mean, has a gradient of exactly 0.
void TrainedLevel::gather_gradient(Maps& g, const Batch& batch) {
    const Maps& top = shape_.pools ? memory_.top : memory_.wide;
    const Plane from = top.plane, to = shape_.after;
    memory_.lanes.clear();
    for (int pack = 0; pack < batch.packs; pack++) {
        Vec* sums = memory_.lanes.data() + share(pack) * 2 * shape_.out;
        for (int o = 0; o < shape_.out; o++) {
            const Vec scale = splat(memory_.scale[o]), mean = splat(memory_.mean[o]);
            const Vec bias = splat(row_[shape_.bias + o]);
            const Vec* top_of = top.pack(pack) + o * from.size();
            Vec* grad = g.pack(pack) + o * to.size();
            Vec plain = {}, along = {};
            for (int y = 0; y < to.height; y++) {
                const Vec* xs = top_of + from.at(y, 0);
                Vec* gs = grad + to.at(y, 0);
                for (int i = 0; i < to.width; i++) {
                    const Vec x = xs[i] - mean, a = kept(fma(x, scale, bias) > Vec{}, gs[i]);
                    gs[i] = a;
                    plain += a;
                    along = fma(a, x, along);
                }
            }
            sums[o] += plain;
            sums[shape_.out + o] += along;
        }
    }
    sums_across(memory_.lanes.data(), 2 * shape_.out, 2 * shape_.out, memory_.sums.data());
    for (int o = 0; o < shape_.out; o++) {
        const float along = memory_.sums[shape_.out + o], spread = memory_.spread[o];
        memory_.sums[shape_.out + o] = along / __builtin_sqrtf(spread);
        // Rounded once: a kernel's gradient along the kernel is a difference of sums that this makes equal.
        memory_.slope[o] = float(-(double(memory_.scale[o]) * double(along) / (double(count_) * double(spread))));
        memory_.constant[o] = -(memory_.sums[o] / count_);
    }
}

// Rows [from, to) of a pack's activations become their gradients, in place.
void TrainedLevel::widen(const Maps& g, int pack, int from, int to, const Batch& batch) {
    const Plane plane = shape_.plane, after = shape_.after, top_plane = memory_.top.plane;
    const std::ptrdiff_t row = plane.row();
    const bool ragged = batch.in_pack(pack) < LANES;
    for (int o = 0; o < shape_.out; o++) {
        const Vec slope = splat(memory_.slope[o]), mean = splat(memory_.mean[o]), scale = splat(memory_.scale[o]);
        const Vec constant = splat(memory_.constant[o]), lost = constant * scale;
        Vec* wide = memory_.wide.pack(pack) + o * plane.size();
        const Vec* gs = g.pack(pack) + o * after.size();
        const int pooled_to = !shape_.pools ? from : to / 2 * 2, columns = shape_.pools ? after.width : 0;
        for (int y = from; y < pooled_to; y += 2) {
            Vec* q = wide + plane.at(y, 0);
            const Vec* top = memory_.top.pack(pack) + o * top_plane.size() + top_plane.at(y / 2, 0);
            const Vec* pulled = gs + after.at(y / 2, 0);
            for (int x = 0; x < columns; x++) {
                const Vec a = q[2 * x], b = q[2 * x + 1], c = q[row + 2 * x], d = q[row + 2 * x + 1];
                const Vec most = top[x], won = (pulled[x] + constant) * scale;
                const Bits at_a = a == most, at_b = (b == most) & ~at_a, at_c = (c == most) & ~(at_a | at_b);
                const Bits at_d = ~(at_a | at_b | at_c);
                q[2 * x] = fma(a - mean, slope, pick(at_a, won, lost));
                q[2 * x + 1] = fma(b - mean, slope, pick(at_b, won, lost));
                q[row + 2 * x] = fma(c - mean, slope, pick(at_c, won, lost));
                q[row + 2 * x + 1] = fma(d - mean, slope, pick(at_d, won, lost));
            }
        }
        for (int y = from; y < to; y++) {  // what is not pooled: all, or an odd row or column
            Vec* q = wide + plane.at(y, 0);
            const int first = y < pooled_to ? 2 * columns : 0;
            for (int x = first; x < plane.width; x++) {
                const Vec grad = shape_.pools ? lost : (gs[after.at(y, x)] + constant) * scale;
                q[x] = fma(q[x] - mean, slope, grad);
            }
        }
        if (!ragged) continue;
        const Bits valid = first_lanes(batch.in_pack(pack));
        for (int y = from; y < to; y++) {
            Vec* q = wide + plane.at(y, 0);
            for (int x = 0; x < plane.width; x++) q[x] = kept(valid, q[x]);
        }
    }
}

void TrainedLevel::backward(
    const Maps& in, Maps& g, Maps* into, const Batch& batch, Vec* sums, std::size_t parameters
) {
    gather_gradient(g, batch);
    const Kernel kernel = shape_.weights(row_);
    if (into != nullptr) pack_turned(kernel, memory_.sign.data(), memory_.turned.data());
    const Plane plane = shape_.plane;
    const std::ptrdiff_t bytes = plane.size() * shape_.out * std::ptrdiff_t(sizeof(Vec));
    const bool large = bytes >= LARGE;
    const int together = large ? 1 : int(2 * LARGE / bytes), rows = large ? PART : plane.height;
    for (int first = 0; first < batch.packs; first += together) {
        const int count = batch.packs - first < together ? batch.packs - first : together;
        for (int y = 0; y < plane.height; y += rows) {
            const int to = y + rows < plane.height ? y + rows : plane.height;
            for (int pack = first; pack < first + count; pack++) widen(g, pack, y, to, batch);
            const Slab slab{in.pack(first), in.stride, plane, memory_.wide.pack(first) + y * plane.row(),
                memory_.wide.stride, plane, y, to - y, first, count};
            add_kernel_gradient(kernel, slab, sums + shape_.kernel, parameters);
        }
        if (into == nullptr) continue;
        const Packs packs{memory_.wide.pack(first), memory_.wide.stride, into->pack(first), into->stride, count};
        convolve_packs(packs, plane, memory_.turned.data(), shape_.out, shape_.in, shape_.taps, false);
    }
}

void TrainedLevel::finish_gradient(float* gradient) const {
    const int each = shape_.in * shape_.wide * shape_.wide;
    for (int o = 0; o < shape_.out; o++) {
        const float sign = memory_.sign[o];
        for (int i = 0; i < each; i++) gradient[shape_.kernel + o * each + i] *= sign;
        gradient[shape_.gain + o] = memory_.sums[shape_.out + o] * sign;
        gradient[shape_.bias + o] = memory_.sums[o];
    }
}

}  // namespace esper
