// Choices of workers/ppo/distributions.py, in float64: masked categorical heads and independent normal distributions.
// No multiplication is fused, so results are the same in every build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace esper::policy {

typedef std::ptrdiff_t Size;

constexpr double LOG_ROOT_TWO_PI = 0.91893853320467274178;

double exponential(double x);  // relative error below 1e-15; 0 below -708, infinite above 709
double logarithm(double x);    // for positive normal numbers; relative error below 1e-15
double normal_quantile(double probability);  // between 0 and 1

struct Judged {
    double log_prob, entropy;
};

// A head's log-probabilities [size] under a mask (null: all valid), that of `action`, and the entropy. The latter are 0
// if nothing is valid.
Judged judge_head(const float* logits, const std::uint8_t* mask, Size size, std::int64_t action, double* log_probs);
// The same for one dimension, normal around `mean`; `distance`: standard deviations from the mean to `action`.
Judged judge_normal(double mean, double log_std, double action, double& distance);

// Chooses by inverse CDF at `uniform`; null: the most probable; 0 if none is valid. `highest`: largest logit
// of the head's group; weights: scratch [size].
std::int64_t draw(
    const float* logits, const std::uint8_t* mask, Size size, float highest, const double* uniform,
    double* weights
);

}  // namespace esper::policy
