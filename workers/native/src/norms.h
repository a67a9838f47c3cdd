// Group norm. Moments per sample over a group's channels are computed in two passes, so that they do not cancel.
#pragma once

#include "convolution.h"

namespace esper {

constexpr float NORM_EPS = 1e-5f;

struct GroupNorm {
    const float* gain = nullptr;  // [channels]
    const float* bias = nullptr;
    int channels = 0, groups = 1;
};

// mean and inverse: [pack][group]
void norm_forward(const Packs& packs, Plane plane, const GroupNorm& norm, bool relu, Vec* mean, Vec* inverse);

// packs.in is the norm's input; packs.out is its output's gradient, replaced by the input's. `y` is the
// output if a ReLU followed, else null. Adds the gradients of gain and bias to [shares][parameters].
struct NormBack {
    const Vec* y;
    std::ptrdiff_t y_apart;
    const Vec* mean;
    const Vec* inverse;
    Vec* gain_sums;
    Vec* bias_sums;
    std::size_t parameters;
    int first_pack;
};
void norm_backward(const Packs& packs, Plane plane, const GroupNorm& norm, const NormBack& back);

}  // namespace esper
