// Choices of workers/ppo/distributions.py, in float64: masked categorical heads and independent normal distributions.
// No multiplication is fused here, so these numbers are the same in every build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace esper::policy {

typedef std::ptrdiff_t Size;

constexpr double LOG_ROOT_TWO_PI = 0.91893853320467274178;

double exponential(double x);  // relative error below 1e-15; 0 below -708, infinite above 709
double logarithm(double x);    // of a positive normal number; relative error below 1e-15
double normal_quantile(double probability);  // between 0 and 1

struct Judged {
    double log_prob, entropy;
};

// A head's log-probabilities [size] under a mask (null: all valid), the one of `action`, and the entropy. Both are 0
// where nothing is valid.
Judged judge_head(const float* logits, const std::uint8_t* mask, Size size, std::int64_t action, double* log_probs);
// The same of one dimension with the normal distribution of `mean`; `distance`: how many deviations `action` is off.
Judged judge_normal(double mean, double log_std, double action, double& distance);

// By inverse CDF at `uniform`, or the most probable where that is null; 0 where none is valid. `highest`: of the logits
// of the head's group; weights: scratch [size].
std::int64_t draw(
    const float* logits, const std::uint8_t* mask, Size size, float highest, const double* uniform,
    double* weights
);

}  // namespace esper::policy
