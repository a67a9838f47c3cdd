// Global average pool, linear layer, softmax and cross entropy of one pack.
#pragma once

#include "host.h"
#include "linear.h"

namespace esper {

struct Outcome {
    double loss = 0.0;
    std::int64_t right = 0;
};

// The head for a pack of `count` samples with these labels.
class Head {
public:
    Head(const HostShape& shape, const float* row, Vectors& memory) : shape_(shape), row_(row) {
        memory.fit(shape.features + 2 * shape.classes);
        pooled_ = memory.data();
        logits_ = pooled_ + shape.features;
        error_ = logits_ + shape.classes;
    }

    // Adds to `outcome` in the order of the samples; `loss`: whether to compute it.
    void forward(const Vec* features, const std::int64_t* labels, int count, bool loss, Outcome& outcome) {
        pool(features, shape_.last, shape_.features, pooled_);
        for (int lane = 0; lane < LANES; lane++) label_[lane] = lane < count ? std::int32_t(labels[lane]) : 0;
        Vec best = {}, own = {};
        Bits found = {};
        for (int k = 0; k < shape_.classes; k++) {
            const Vec a = logits_[k] = linear_output(shape_.head, row_, pooled_, k);
            const Bits better = k == 0 ? ~Bits{} : ~(a <= best) & (best == best);  // the first NaN wins
            best = pick(better, a, best);
            found = better ? Bits{} + k : found;
            own = pick(label_ == k, a, own);
        }
        const Bits right = found == label_;
        for (int lane = 0; lane < count; lane++) outcome.right += right[lane] != 0;
        if (!loss) return;
        Vec total = {};
        for (int k = 0; k < shape_.classes; k++) {
            error_[k] = exponential(logits_[k] - best);
            total += error_[k];
        }
        total_ = total;
        const Vec losses = logarithm(total) + (best - own);
        for (int lane = 0; lane < count; lane++) outcome.loss += double(losses[lane]);
    }

    // After `forward` with the loss, which was the mean of `samples`: the gradient of the features, and of weight and
    // bias added to `sums`, that of the pack's share, where the row's parameters are.
    void backward(int count, int samples, Vec* sums, Vec* gradient) {
        const Plane plane = shape_.last;
        const Bits valid = first_lanes(count);
        const Vec one = splat(1.0f), each = splat(1.0f / float(samples));
        for (int k = 0; k < shape_.classes; k++) {
            const Vec p = error_[k] / total_;
            error_[k] = kept(valid, (p - kept(label_ == k, one)) * each);
        }
        linear_backward(shape_.head, row_, pooled_, error_, sums, pooled_);
        const Vec part = splat(1.0f / float(plane.pixels()));
        for (int c = 0; c < shape_.features; c++) {
            const Vec d = pooled_[c] * part;
            Vec* g = gradient + c * plane.size();
            each_pixel(plane, 1, [&](std::ptrdiff_t i) { g[i] = d; });
        }
    }

private:
    const HostShape& shape_;
    const float* row_;
    Vec *pooled_, *logits_, *error_;
    Vec total_ = {};
    Bits label_ = {};
};

}  // namespace esper
