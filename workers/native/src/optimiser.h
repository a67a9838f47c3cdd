// SGD with momentum on one row, with its gradient clipped to a norm.
#pragma once

#include <cstddef>

namespace esper {

struct Descent {
    float rate, momentum, weight_decay, max_norm;
};

void descend(float* values, float* momentum, const float* gradient, std::size_t count, const Descent& rule);

}  // namespace esper
