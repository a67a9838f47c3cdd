#include "optimiser.h"

#include "lanes.h"

namespace esper {

namespace {

typedef double Doubles __attribute__((vector_size(64)));
constexpr std::size_t WIDE = 8;

// In an order that is part of the arithmetic, the same whatever the width of vectors.
double sum_of_squares(const float* x, std::size_t count) {
    Doubles sums[2] = {};
    std::size_t i = 0;
    for (; i + 2 * WIDE <= count; i += 2 * WIDE)
        for (std::size_t half = 0; half < 2; half++) {
            Doubles v;
            for (std::size_t k = 0; k < WIDE; k++) v[k] = double(x[i + half * WIDE + k]);
            sums[half] += v * v;
        }
    Doubles both = sums[0] + sums[1];
    double sum = 0.0;
    for (std::size_t k = 0; k < WIDE; k++) sum += both[k];
    for (; i < count; i++) sum += double(x[i]) * double(x[i]);
    return sum;
}

}  // namespace

void descend(float* values, float* momentum, const float* gradient, std::size_t count, const Descent& rule) {
    const float norm = float(__builtin_sqrt(sum_of_squares(gradient, count)));
    float factor = rule.max_norm / (norm + 1e-6f);
    if (factor > 1.0f) factor = 1.0f;  // a norm that is not finite makes everything so
    for (std::size_t i = 0; i < count; i++) {
        const float g = gradient[i] * factor + rule.weight_decay * values[i];
        momentum[i] = rule.momentum * momentum[i] + g;
        values[i] -= rule.rate * momentum[i];
    }
}

}  // namespace esper
